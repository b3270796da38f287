import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { lookupUpstream } from '../../../platform/addresses/upstream-lookup.ts';

/** The longest answer of a client that is read. */
const maxAnswerBytes = 64 * 1024;

/**
 * Asks a client at an address that is registered for it: never by a name where machines keep their credentials, following
 * no redirect. With a form it is a POST, whose answer is not read. Throws where there is no answer or too long a one, and
 * when `signal` is aborted.
 */
export async function requestClient(
  url: string,
  signal: AbortSignal,
  form?: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly body: string }> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  const sent = request(url, {
    method: form === undefined ? 'GET' : 'POST',
    agent: false,
    lookup: lookupUpstream,
    signal,
    headers: form && { 'content-type': 'application/x-www-form-urlencoded' },
  }).end(form && new URLSearchParams(form).toString());
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const status = answer.statusCode ?? 0;
  if (form !== undefined || status !== 200) {
    answer.on('error', () => undefined).destroy();
    return { status, body: '' };
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswerBytes) throw new RangeError(`${url} answers with more than 64 KiB`);
    chunks.push(chunk);
  }
  return { status, body: Buffer.concat(chunks).toString() };
}
