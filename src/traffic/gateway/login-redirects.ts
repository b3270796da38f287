import type { Redirected, RequestLike } from '../../client/decision.ts';
import type { Route } from '../proxy/route.ts';
import type { CrossOriginLogin } from './cross-origin-login.ts';
import type { BeginServerLogin } from './server-login.ts';

/** Where the server guard sends a browser that it does not let in, to come back to a path. */
export interface LoginRedirects {
  toLogin(route: Route, url: string, request: RequestLike): Promise<Redirected>;
  /** Its user is asked about opening another user's server. */
  toQuestion(url: string, request: RequestLike): Redirected;
}

/** Through the hub, and by way of `crossOriginLogin` where servers have hosts of their own. */
export function createLoginRedirects(deps: {
  readonly crossOriginLogin: Pick<CrossOriginLogin, 'begin'> | undefined;
  readonly beginLogin: BeginServerLogin;
  readonly loginUrl: (next: string) => string;
  readonly questionUrl: (next: string) => string;
}): LoginRedirects {
  const { crossOriginLogin, beginLogin } = deps;
  if (crossOriginLogin !== undefined) {
    return {
      toLogin: async (_route, url, request) => crossOriginLogin.begin(url, request),
      toQuestion: (url, request) => crossOriginLogin.begin(url, request),
    };
  }
  const redirect = (location: string): Redirected => ({
    kind: 'redirect',
    location,
    setCookies: [],
  });
  return {
    toLogin: async (route, url, request) =>
      (await beginLogin(route, url, request)) ?? redirect(deps.loginUrl(url)),
    toQuestion: (url) => redirect(deps.questionUrl(url)),
  };
}
