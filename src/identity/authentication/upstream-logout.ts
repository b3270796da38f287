import type { Logger } from 'pino';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { type KeyvSpace, useOnce } from '../../platform/store/keyv-space.ts';
import type { CallOptions, LogoutTokenResult } from '../../plugin/host/authenticator.ts';
import { isExternal } from '../../plugin/host/login-kinds.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import type { Authenticators } from './create-authenticators.ts';

export type UpstreamLogoutResult =
  | { readonly outcome: 'done'; readonly ended: number }
  | { readonly outcome: 'refused'; readonly message: string };

/** Ends logins that a provider says have ended there (OpenID Connect Back-Channel Logout 1.0). */
export type EndUpstreamLogins = (
  logoutToken: string,
  options: CallOptions,
) => Promise<UpstreamLogoutResult>;

export function createUpstreamLogout(deps: {
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly identities: Pick<IdentityStore, 'find'>;
  readonly logins: Pick<LoginSessions, 'endAllOfIdentity' | 'endAllOfUpstreamSession'>;
  /** Hashes of tokens that were used, until they expire. */
  readonly used: Pick<KeyvSpace<true>, 'update'>;
  readonly log: Logger;
}): EndUpstreamLogins {
  const { authenticators, identities, logins, used, log } = deps;

  async function verify(logoutToken: string, options: CallOptions) {
    const problems: string[] = [];
    for (const { name, authenticator } of authenticators.list) {
      if (!isExternal(authenticator)) continue;
      const result = await authenticator.verifyLogoutToken?.(logoutToken, options);
      if (result?.outcome === 'verified') return { name, verified: result };
      if (result !== undefined) problems.push(`${name}: ${result.message}`);
    }
    return { problems };
  }

  async function end(
    authenticator: string,
    { issuer, subject, upstreamSessionId }: Extract<LogoutTokenResult, { outcome: 'verified' }>,
  ): Promise<number> {
    if (subject === undefined) {
      return upstreamSessionId === undefined
        ? 0
        : await logins.endAllOfUpstreamSession(authenticator, upstreamSessionId);
    }
    const identity = await identities.find({ authenticator, issuer, subject });
    return identity === undefined
      ? 0
      : await logins.endAllOfIdentity(identity.id, upstreamSessionId);
  }

  return async (logoutToken, options) => {
    const { name, verified, problems } = await verify(logoutToken, options);
    if (verified === undefined) {
      log.warn({ problems }, 'logout token refused');
      return { outcome: 'refused', message: 'The logout token cannot be verified.' };
    }
    const key = hashSecret(JSON.stringify([name, verified.issuer, verified.tokenId]));
    const lifetimeMs = Math.max(1000, verified.expiresAt.getTime() - Date.now());
    // A replay must not end later logins.
    if (!(await useOnce(used, key, lifetimeMs))) {
      log.warn({ authenticator: name }, 'logout token replayed');
      return { outcome: 'refused', message: 'The logout token was used before.' };
    }
    const ended = await end(name, verified);
    log.info({ authenticator: name, ended }, 'logins ended by provider');
    return { outcome: 'done', ended };
  };
}
