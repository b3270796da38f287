import { isIP } from 'node:net';

/** Where an upstream listens, read once from a route's target. */
export interface UpstreamAddress {
  /** Scheme, host and port; of a Unix socket a stand-in that only fills the URL. */
  readonly origin: string;
  readonly protocol: 'http:' | 'https:';
  readonly hostname: string;
  readonly port: number;
  readonly socketPath: string | undefined;
  /** Name the upstream's certificate must carry; empty for an address, which TLS never sends. */
  readonly servername: string;
}

const socketProtocols = new Set(['http+unix:', 'unix+http:']);

/**
 * Reads a target: `http://host:port`, `https://host:port` or `http+unix://%2Fpath`. A path in it is
 * of no account, because the public path is forwarded whole. Throws TypeError for anything else.
 */
export function parseUpstreamAddress(target: string): UpstreamAddress {
  const url = URL.parse(target);
  if (url === null) throw new TypeError('the target of a route is no URL');
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('the target of a route must not hold a user name or password');
  }
  if (socketProtocols.has(url.protocol)) {
    const socketPath = decodeURIComponent(url.hostname);
    if (!socketPath.startsWith('/') || socketPath.includes('\0')) {
      throw new TypeError('the target of a route names no absolute socket path');
    }
    const origin = 'http://localhost';
    return {
      origin,
      protocol: 'http:',
      hostname: 'localhost',
      port: 80,
      socketPath,
      servername: '',
    };
  }
  if ((url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new TypeError('the target of a route must begin with http://, https:// or http+unix://');
  }
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  return {
    origin: url.origin,
    protocol: url.protocol,
    hostname,
    port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
    socketPath: undefined,
    servername: isIP(hostname) === 0 ? hostname : '',
  };
}
