import { isLoopback } from '../addresses/host-address.ts';

/** Room for the path of a Unix socket, without its final NUL (unix(7)). */
export const maxSocketPathBytes = 107;

/**
 * Brings the ways to write a URL at which the hub listens into one: `unix:///run/hub.sock` and
 * `unix+http://%2Frun%2Fhub.sock` become `http+unix://%2Frun%2Fhub.sock/`.
 */
export function normaliseBindUrl(text: string): string {
  const path = /^unix:(?:\/\/)?(\/(?!\/).*)$/.exec(text)?.[1];
  if (path !== undefined) return `http+unix://${encodeURIComponent(path)}/`;
  return text.replace(/^unix\+http:/, 'http+unix:');
}

/** Path of the Unix socket that a normalised URL names; undefined when it names a TCP port. */
export function socketPathOf(bindUrl: string): string | undefined {
  const encoded = /^http\+unix:\/\/([^/]*)/.exec(bindUrl)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Says what is wrong with the path of a socket; undefined when nothing is. */
export function socketPathProblem(path: string): string | undefined {
  if (!path.startsWith('/'))
    return 'needs the whole path of the socket, such as unix:///run/hub/hub.sock';
  const length = Buffer.byteLength(path);
  if (length <= maxSocketPathBytes) return undefined;
  return `the path of the socket is too long: ${length} bytes, ${maxSocketPathBytes} is the most a system takes`;
}

/** Whether every account of the machine may open a socket with this mode, such as `0666`. */
export function isOpenToAll(mode: string): boolean {
  return (Number.parseInt(mode, 8) & 0o002) !== 0;
}

/** Whether a URL, of a Unix socket perhaps, leads to a listener only on the machine of that. */
export function isOfOneMachine(url: string): boolean {
  return socketPathOf(normaliseBindUrl(url)) !== undefined || isLoopback(new URL(url).hostname);
}
