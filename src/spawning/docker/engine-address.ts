/** Where an engine listens. */
export type EngineAddress =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

export const defaultEngine = 'unix:///var/run/docker.sock';
const tlsPort = 2376;

/** Reads `unix:///path` or `tcp://host:port`, as DOCKER_HOST has them; undefined when it is neither. */
export function parseEngineAddress(text: string): EngineAddress | undefined {
  if (text.startsWith('unix://')) {
    const path = text.slice('unix://'.length);
    return path.startsWith('/') ? { kind: 'socket', path } : undefined;
  }
  const url = URL.parse(text);
  if (url?.protocol !== 'tcp:' || url.hostname === '' || url.username !== '') return undefined;
  if (!['', '/'].includes(url.pathname)) return undefined;
  const port = url.port === '' ? tlsPort : Number(url.port);
  return { kind: 'tcp', host: url.hostname.replace(/^\[|\]$/g, ''), port };
}

/** Whether an engine is of this machine, as far as its address tells. */
export function isLocalEngine(text: string): boolean {
  const address = parseEngineAddress(text);
  if (address?.kind !== 'tcp') return true;
  return address.host === 'localhost' || address.host === '::1' || address.host.startsWith('127.');
}
