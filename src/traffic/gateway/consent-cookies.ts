import type { Secret } from '../../platform/config/secret.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { openCookies, serializeCookie } from '../../platform/http/cookies.ts';
import { serverGuardCookie } from '../../platform/protocol/cookie-names.ts';

/** The answers of visitors who were asked whether they want to open another user's server. */
export interface ConsentCookies {
  /** Value of a Set-Cookie header that keeps a yes, for one login and one server. */
  yes(sessionId: string, server: AnsweredServer): string;
  /** Whether a Cookie header holds a yes of this login for this server. */
  isYes(cookieHeader: string | undefined, sessionId: string, serverId: string): boolean;
}

/** The server itself: another one may get its path. */
interface AnsweredServer {
  readonly id: string;
  /** Path, with a slash at both ends. */
  readonly prefix: string;
}

export function createConsentCookies(deps: {
  readonly secrets: readonly Secret[];
  readonly isSecure: boolean;
}): ConsentCookies {
  const sealer = createSealer(deps.secrets, 'door');
  const textOf = (sessionId: string, serverId: string) => `${sessionId} ${serverId}`;
  return {
    yes: (sessionId, { id, prefix }) =>
      serializeCookie(serverGuardCookie, sealer.seal(textOf(sessionId, id), serverGuardCookie), {
        path: prefix,
        secure: deps.isSecure,
      }),
    isYes: (cookieHeader, sessionId, serverId) =>
      openCookies(sealer, cookieHeader, serverGuardCookie).includes(textOf(sessionId, serverId)),
  };
}
