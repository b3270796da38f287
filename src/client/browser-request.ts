import { type RequestLike, single } from './decision.ts';

/**
 * Whether a request opens a WebSocket (RFC 6455 §4.1, RFC 8441 §5), or is what a proxy asks about one: that has the
 * headers of the handshake, but may lack Upgrade, which is of one connection only.
 */
export function isWebSocketHandshake({ headers }: RequestLike): boolean {
  return (
    headers['sec-websocket-version'] !== undefined ||
    headers['sec-websocket-key'] !== undefined ||
    headers['sec-fetch-mode'] === 'websocket' ||
    single(headers['upgrade'])?.toLowerCase() === 'websocket'
  );
}

/**
 * Whether a request without a login is sent to the login page: any GET that may come from a person.
 * What shows itself to be a program (a script's fetch, a WebSocket, a request with a token, one that
 * takes no HTML, or hardly) gets 401 instead, since a login page is no use to it. So do programs that send their
 * password only after a 401, and do not say what they take.
 */
export function mayFollowLogin(request: RequestLike): boolean {
  const { method = 'GET', headers } = request;
  if ((method !== 'GET' && method !== 'HEAD') || isWebSocketHandshake(request)) return false;
  if (headers['x-requested-with'] !== undefined) return false;
  if (asksFirst.test(single(headers['user-agent']) ?? '')) return false;
  const mode = single(headers['sec-fetch-mode']);
  if (mode !== undefined) return mode === 'navigate' || mode === 'nested-navigate';
  return headers['authorization'] === undefined && takesHtml(single(headers['accept']));
}

/** `docker`, and `podman` and its like. */
const asksFirst = /^(?:git|docker|containers)\//;

/** Browsers like HTML best; a program such as pip takes it at a pinch (`q=0.01`, RFC 9110 §12.5.1). */
const html = /text\/html(?!\s*;\s*q=0(?:\.[0-4]|\s*(?:,|$)))/i;

function takesHtml(accept: string | undefined): boolean {
  return accept === undefined || accept.includes('*/*') || html.test(accept);
}

/**
 * Whether a request shows itself to come from a browser, by what every browser sends and few programs do.
 * On plain http that is Origin, `text/html` where a page is to be shown, and the first word of User-Agent. Sec-Fetch-Mode alone says
 * nothing: the fetch of Node.js sends that, and neither of the other two.
 */
export function isFromBrowser(request: RequestLike): boolean {
  const { headers } = request;
  return (
    headers['sec-fetch-site'] !== undefined ||
    headers['sec-fetch-dest'] !== undefined ||
    headers['origin'] !== undefined ||
    single(headers['user-agent'])?.startsWith('Mozilla/') === true ||
    namesHtml(headers) ||
    isForPage(request)
  );
}

/** Whether a browser may show the answer as a page, in a window or a frame, whatever the method. */
export function isForPage({ headers }: RequestLike): boolean {
  const mode = single(headers['sec-fetch-mode']);
  if (mode === undefined) return namesHtml(headers);
  return mode === 'navigate' || mode === 'nested-navigate';
}

function namesHtml(headers: RequestLike['headers']): boolean {
  return html.test(single(headers['accept']) ?? '');
}

/** Whether a browser asks for a script what it may send (Fetch standard, CORS preflight): without any cookie or token. */
export function isPreflight({ method, headers }: RequestLike): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/**
 * Whether a request that a cookie authenticates may have been made by a page of another origin:
 * one that changes something, or a WebSocket handshake, which browsers let any page open. What a script of
 * another origin fetches with GET the app allows or not (CORS), but then the browser says that it is a fetch.
 */
export function isForged(request: RequestLike, publicOrigin: string | undefined): boolean {
  const { method = 'GET', headers } = request;
  const origin = single(headers['origin']);
  if (isWebSocketHandshake(request)) {
    // Every browser names the origin here; a program without one can send a token.
    return origin === undefined || !isOwnOrigin(origin, request, publicOrigin);
  }
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') {
    if (origin === undefined || headers['sec-fetch-mode'] !== undefined) return false;
    return method === 'GET' && !isOwnOrigin(origin, request, publicOrigin);
  }
  const site = single(headers['sec-fetch-site']);
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  // Neither header: no browser of today, and SameSite=Lax already guards those of yesterday.
  return origin !== undefined && !isOwnOrigin(origin, request, publicOrigin);
}

function isOwnOrigin(
  origin: string,
  request: RequestLike,
  publicOrigin: string | undefined,
): boolean {
  if (origin === publicOrigin) return true;
  const url = URL.parse(origin);
  const host = single(request.headers['host'])?.toLowerCase();
  if (url === null || host === undefined || url.origin !== origin.toLowerCase()) return false;
  if (publicOrigin?.startsWith('https:') === true && url.protocol !== 'https:') return false;
  const defaultPort = url.protocol === 'https:' ? ':443' : ':80';
  return url.host === host || `${url.host}${defaultPort}` === host;
}
