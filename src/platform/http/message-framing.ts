import type { IncomingMessage } from 'node:http';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

/**
 * Why a request is refused by its head alone, whatever it asks for: a version other than 1.0 and 1.1 (RFC 9110 §2.5),
 * a transfer coding other than `chunked` (RFC 9112 §6.1, §6.3), or a length that not every reader can count
 * (RFC 9110 §8.6). Node's parser refuses other framing errors itself. Undefined when nothing is wrong.
 */
export function framingProblem({ httpVersion, headers }: IncomingMessage): HubError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return new HubError(
      'version_not_supported',
      text`This HTTP version is not supported; use HTTP/1.1.`,
    );
  }
  const { 'transfer-encoding': coding, 'content-length': length } = headers;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    // If the last coding is another one, the end of the body cannot be known.
    return /(?:^|[\s,])chunked$/i.test(coding)
      ? new HubError(
          'not_implemented',
          text`This transfer coding is not supported; use chunked alone.`,
        )
      : new HubError('bad_request', text`The last transfer coding is not chunked.`);
  }
  if (length !== undefined && !Number.isSafeInteger(Number(length))) {
    return new HubError('bad_request', text`The Content-Length is too large.`);
  }
  return undefined;
}
