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

/**
 * The name in a Host header as it is compared: without port, in lower case, without the dot that may end
 * it. The port is left out because proxies do so, and none tells one origin of the hub from another.
 */
export function hostnameOf(hostHeader: string): string | undefined {
  const [, name] = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.exec(hostHeader) ?? [];
  return name?.toLowerCase().replace(/\.$/, '');
}
