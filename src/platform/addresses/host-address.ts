import { isIP } from 'node:net';
import { createAddressList } from './local-addresses.ts';

/**
 * The host of a URL in one spelling: without brackets and without the dot that ends a whole name, and an
 * IPv4 address that IPv6 embeds (RFC 4291 §2.5.5.2) as itself.
 */
export function plainHost(hostname: string): string {
  const host = hostname.replaceAll(/^\[|\]$|\.$/g, '');
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host) ?? [];
  if (high === undefined || low === undefined) return host;
  return [high, low]
    .map((word) => Number.parseInt(word, 16))
    .flatMap((word) => [word >> 8, word & 0xff])
    .join('.');
}

/** Whether the host name of a URL means this machine wherever it is read. */
export function isLoopback(hostname: string): boolean {
  const host = plainHost(hostname);
  return host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);
}

/** Whether the host name of a URL stands for all addresses of this machine. */
export function isUnspecified(hostname: string): boolean {
  const host = plainHost(hostname);
  return host === '0.0.0.0' || host === '::';
}

/** Port of an `http://` or `https://` URL. */
export function portOf({ protocol, port }: Pick<URL, 'protocol' | 'port'>): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

/**
 * Link-local addresses (RFC 3927, RFC 4291 §2.5.6), also through NAT64 (RFC 6052), and the others at which
 * clouds answer every program of a machine with the credentials of that machine.
 */
const metadataAddresses = createAddressList([
  '169.254.0.0/16',
  'fe80::/10',
  '64:ff9b::a9fe:0/112',
  'fd00:ec2::254',
  'fd20:ce::254',
  '100.100.100.200',
  '168.63.129.16',
]);

/** Whether an IP address, or the host of a URL that is one, is where machines keep their own credentials. */
export function isMetadataAddress(hostname: string): boolean {
  const host = plainHost(hostname);
  const family = isIP(host);
  return family !== 0 && metadataAddresses.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/** Whether a name says by itself that it is of this machine or of a private network. */
export function isLocalName(host: string): boolean {
  return !host.includes('.') || /\.(?:local|internal|localhost)\.?$/.test(host);
}
