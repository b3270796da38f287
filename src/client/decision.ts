import type { HubError } from '../platform/errors.ts';
import {
  type Answer,
  errorAnswer,
  retryAfterHeader,
  toErrorResponse,
} from '../platform/http/answer.ts';
import { authorizationToken } from '../platform/protocol/token-parameter.ts';
import type { UserModel } from './hub-api.ts';

/** What a decision is made from; Node's `IncomingMessage` is one. */
export interface RequestLike {
  readonly method?: string | undefined;
  /** Path and query as they arrived. */
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** One value of a header that may not be repeated. */
export function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Where a request carried its token. */
export type TokenSource = 'url' | 'header' | 'cookie';

/** The request may be served. */
export interface Allowed {
  readonly kind: 'allowed';
  readonly user: UserModel;
  readonly token: string;
  readonly source: TokenSource;
  /** Path and query without the token that was in them. */
  readonly url: string;
}

/** The browser must go elsewhere first (302). */
export interface Redirected {
  readonly kind: 'redirect';
  readonly location: string;
  /** Values of Set-Cookie headers. */
  readonly setCookies: readonly string[];
}

/** The request must not be served. */
export interface Denied {
  readonly kind: 'denied';
  readonly status: number;
  /** Why; message and hint are fit for the visitor, the cause is for the log. */
  readonly error: HubError;
  readonly headers: Readonly<Record<string, string>>;
  readonly setCookies: readonly string[];
  /** Who was refused, when that is known. */
  readonly user?: UserModel;
}

/** The browser is shown a page of the client library itself (200). */
export interface Shown {
  readonly kind: 'page';
  readonly html: string;
}

/** What shall happen to a request. */
export type Decision = Allowed | Redirected | Denied | Shown;

/** What happens to a request that the service does not get to serve. */
export type Answered = Exclude<Decision, Allowed>;

/** Turns an error into a denial. */
export function deny(
  error: HubError,
  rest: Partial<Pick<Denied, 'headers' | 'setCookies' | 'user'>> = {},
): Denied {
  const response = toErrorResponse(error);
  return {
    kind: 'denied',
    status: response.status,
    error,
    setCookies: [],
    ...rest,
    headers: { ...retryAfterHeader(response), ...rest.headers },
  };
}

/** Writes a decision as an answer; a denial as a small page for browsers, JSON for programs. */
export function toAnswer(decision: Answered, wantsPage: boolean): Answer {
  switch (decision.kind) {
    case 'redirect':
      return {
        status: 302,
        headers: {
          'cache-control': 'no-store',
          'referrer-policy': 'same-origin',
          ...setCookieHeader(decision.setCookies),
          location: decision.location,
        },
        body: '',
      };
    case 'page':
      return { status: 200, headers: questionHeaders, body: decision.html };
    case 'denied': {
      const answer = errorAnswer(toErrorResponse(decision.error), {
        headers: {
          ...decision.headers,
          ...setCookieHeader(decision.setCookies),
          ...(wantsPage && { 'content-security-policy': pagePolicy("frame-ancestors 'self'") }),
        },
        ...(wantsPage && { page: denialPage(decision.error) }),
      });
      return { ...answer, status: decision.status };
    }
  }
}

function setCookieHeader(setCookies: readonly string[]): Answer['headers'] {
  return setCookies.length === 0 ? {} : { 'set-cookie': [...setCookies] };
}

function pagePolicy(...directives: readonly string[]): string {
  return ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", ...directives].join(
    '; ',
  );
}

/** Of a page that asks something: no other page may show it in a frame or press its button. */
const questionHeaders = {
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': pagePolicy("form-action 'self'", "frame-ancestors 'none'"),
  'content-type': 'text/html; charset=utf-8',
};

/** Shows a small page; `content` is HTML. */
export function show(page: { readonly title: string; readonly content: string }): Shown {
  return { kind: 'page', html: smallPage(page) };
}

function denialPage(error: HubError): string {
  const content = error.hint === undefined ? '' : `<p>${escapeHtml(error.hint)}</p>`;
  return smallPage({ title: error.message, content });
}

function smallPage({ title, content }: { title: string; content: string }): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.4rem;line-height:1.3}form{display:flex;flex-wrap:wrap;gap:1rem 1.5rem;align-items:center;margin-top:2rem}button{font:inherit;padding:.5rem 1rem}</style>
<h1>${escapeHtml(title)}</h1>${content}
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A token a request carries, not yet checked. */
export interface PresentedToken {
  readonly token: string;
  readonly source: TokenSource;
}

const tokenPattern = /^[\x21-\x7e]{1,4096}$/;

/** Whether a text can be a token at all; nothing else is ever sent to the hub. */
export function isTokenShaped(text: string): boolean {
  return tokenPattern.test(text);
}

/**
 * The token of the `Authorization` header. A browser keeps the password of `Basic` and sends it with what any page
 * makes it ask for, so that counts for programs only.
 */
export function headerToken(request: RequestLike): string | undefined {
  const found = authorizationToken(single(request.headers['authorization']));
  return found?.isBasic === true && isFromBrowser(request) ? undefined : found?.token;
}

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

/**
 * Whether a request is one of a client of the Model Context Protocol: no other kind of client takes both of these
 * (2025-06-18, Transports, "Sending Messages to the Server").
 */
export function isFromAgent(request: RequestLike): boolean {
  const accept = single(request.headers['accept']) ?? '';
  const takesBoth = accept.includes('application/json') && accept.includes('text/event-stream');
  return takesBoth && !isFromBrowser(request);
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
