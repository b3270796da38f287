import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { serializeCookie } from '../http/cookies.ts';
import { openCookies } from '../http/sealed-cookies.ts';
import { doorCookie } from '../protocol/cookie-names.ts';
import type { Route } from '../proxy/route.ts';

/** The answers of visitors who were asked whether they want to open another user's server. */
export interface DoorAnswers {
  /** Value of a Set-Cookie header that keeps a yes, for one login and one server. */
  yes(sessionId: string, route: Pick<Route, 'prefix'>): string;
  /** Whether a Cookie header holds a yes of this login for this server. */
  isYes(cookieHeader: string | undefined, sessionId: string, route: Pick<Route, 'prefix'>): boolean;
}

export function createDoorAnswers(deps: {
  readonly secrets: readonly Secret[];
  readonly isSecure: boolean;
}): DoorAnswers {
  const sealer = createSealer(deps.secrets, 'door');
  const textOf = (sessionId: string, { prefix }: Pick<Route, 'prefix'>) => `${sessionId} ${prefix}`;
  return {
    yes: (sessionId, route) =>
      serializeCookie(doorCookie, sealer.seal(textOf(sessionId, route), doorCookie), {
        path: route.prefix,
        secure: deps.isSecure,
      }),
    isYes: (cookieHeader, sessionId, route) =>
      openCookies(sealer, cookieHeader, doorCookie).includes(textOf(sessionId, route)),
  };
}
