import type { IncomingMessage } from 'node:http';

/**
 * Whether a request names its host more than once, which is answered with 400 (RFC 9112 §3.2): Node
 * takes the first, and another program on the way may have taken the last.
 */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}
