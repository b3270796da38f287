import type { Redirected, RequestLike } from '../client/decision.ts';
import type { Route } from '../proxy/route.ts';
import type { Arrivals } from './arrivals.ts';
import type { BeginServerLogin } from './server-login.ts';

/** Where the door sends a browser that it does not let in, to come back to a path. */
export interface DoorWays {
  toLogin(route: Route, url: string, request: RequestLike): Promise<Redirected>;
  /** Its user is asked about opening another user's server. */
  toQuestion(url: string, request: RequestLike): Redirected;
}

/** Through the hub, and by way of `arrivals` where servers have hosts of their own. */
export function createDoorWays(deps: {
  readonly arrivals: Pick<Arrivals, 'begin'> | undefined;
  readonly beginLogin: BeginServerLogin;
  readonly loginUrl: (next: string) => string;
  readonly questionUrl: (next: string) => string;
}): DoorWays {
  const { arrivals, beginLogin } = deps;
  if (arrivals !== undefined) {
    return {
      toLogin: async (_route, url, request) => arrivals.begin(url, request),
      toQuestion: (url, request) => arrivals.begin(url, request),
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
