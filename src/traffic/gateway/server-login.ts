import { type Redirected, type RequestLike, single } from '../../client/decision.ts';
import { HubError } from '../../platform/errors.ts';
import type { Forwarder } from '../proxy/forwarder.ts';
import type { AnswerHead } from '../proxy/http1/upstream-pool.ts';
import { confinedSetCookie, isStateCookie, publicLocation } from '../proxy/response-headers.ts';
import type { Route } from '../proxy/route.ts';

/**
 * Begins the login of a browser at a server, which then is the one to end it: the redirect to the hub's authorization
 * endpoint, with the cookies of that login. Undefined where the server answers anything else.
 */
export type BeginServerLogin = (
  route: Route,
  /** Path and query of the page wanted. */
  url: string,
  request: RequestLike,
) => Promise<Redirected | undefined>;

const timeoutMs = 5_000;
const maxCookies = 8;
/** Browsers drop a cookie of more bytes. */
const maxCookieLength = 4_096;

/**
 * The hub asks the server in a request of its own, which tells nothing of the browser but the page it wants; of the
 * answer the browser gets nothing but what a login is begun with.
 */
export function createBeginServerLogin(deps: {
  readonly forwarder: Pick<Forwarder, 'ask'>;
  readonly publicUrl: URL;
  readonly authorizePath: string;
}): BeginServerLogin {
  const { forwarder, publicUrl, authorizePath } = deps;

  async function ask(route: Route, path: string, host: string): Promise<AnswerHead | undefined> {
    const headers = {
      host,
      accept: 'text/html',
      'user-agent': 'hub',
      'sec-fetch-mode': 'navigate',
      'x-forwarded-host': host,
      'x-forwarded-proto': publicUrl.protocol.slice(0, -1),
    };
    try {
      return await forwarder.ask(route, { path, headers, timeoutMs });
    } catch (error) {
      if (error instanceof HubError) return undefined;
      throw error;
    }
  }

  /** The address of a login for this server, as a path of the hub. */
  function authorizeUrl(location: string, route: Route, host: string): string | undefined {
    const path = publicLocation(location, route, [host, publicUrl.host]);
    if (!path.startsWith(`${authorizePath}?`)) return undefined;
    const query = new URLSearchParams(path.slice(authorizePath.length));
    const clientIds = query.getAll('client_id');
    if (clientIds.length !== 1 || clientIds[0] !== route.clientId) return undefined;
    return `${authorizePath}?${query}`;
  }

  return async (route, url, request) => {
    const host = single(request.headers['host']) ?? publicUrl.host;
    const { status, headers } = (await ask(route, url, host)) ?? {};
    const location = single(headers?.['location']);
    if (status !== 302 || location === undefined) return undefined;
    const authorize = authorizeUrl(location, route, host);
    if (authorize === undefined) return undefined;
    const setCookies = [headers?.['set-cookie'] ?? []]
      .flat()
      .filter((line) => line.length <= maxCookieLength && isStateCookie(nameOf(line), route))
      .flatMap((line) => confinedSetCookie(line, route) ?? [])
      .slice(0, maxCookies);
    return { kind: 'redirect', location: authorize, setCookies };
  };
}

function nameOf(setCookie: string): string {
  return setCookie.split('=', 1)[0]?.trim() ?? '';
}
