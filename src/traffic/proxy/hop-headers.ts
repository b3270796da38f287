import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';

/** Header by which an instance of the hub passes a request on to another one. */
export const hopHeader = 'x-hub-hop';

/** Of one connection only (RFC 9110 §7.6.1); the length of the body is left to the caller. */
const ofConnection = new Set([
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * The headers of a request that goes to another instance of the hub: as they came, because that one
 * checks the visitor and takes out what is not for the upstream. Throws `bad_request` for a second Host.
 */
export function hopRequestHeaders(source: {
  readonly rawHeaders: readonly string[];
  readonly requestId: string;
  readonly headersToAdd: readonly string[];
}): string[] {
  const { rawHeaders, requestId, headersToAdd } = source;
  const listed = listedOptions(rawHeaders);
  const headers: string[] = [];
  let hosts = 0;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const lowerName = name.toLowerCase();
    if (lowerName === 'host') hosts += 1;
    const isDropped = ofConnection.has(lowerName) || listed.has(lowerName);
    // No client says for an instance where a request came from.
    if (isDropped || lowerName === hopHeader || lowerName === 'x-request-id') continue;
    headers.push(name, rawHeaders[index + 1] ?? '');
  }
  if (hosts > 1) throw new HubError('bad_request', text`The request has two Host headers.`);
  return [...headers, 'X-Request-Id', requestId, ...headersToAdd];
}

/** The headers of the answer of another instance: what the client is to get, as if from here. */
export function hopResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string[] {
  const pairs: string[] = [];
  for (const [name, value = []] of Object.entries(headers)) {
    // Its length is the one thing of the framing that stays true.
    if (ofConnection.has(name) && name !== 'content-length') continue;
    for (const item of [value].flat()) pairs.push(name, item);
  }
  return pairs;
}

/** What Connection lists. A client cannot withdraw Host. */
function listedOptions(rawHeaders: readonly string[]): ReadonlySet<string> {
  const listed = new Set<string>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'connection') continue;
    for (const option of (rawHeaders[index + 1] ?? '').toLowerCase().split(',')) {
      listed.add(option.trim());
    }
  }
  listed.delete('host');
  return listed;
}
