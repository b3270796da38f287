import type { Logger } from 'pino';
import { HubError } from '../../platform/errors.ts';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../platform/store/change-aware-cache.ts';
import { text } from '../../platform/texts/text.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Caller } from '../rbac/caller.ts';
import type { Login, LoginSessions } from '../sessions/login-sessions.ts';
import type { Identity, IdentityStore } from '../users/identity-store.ts';
import type { User } from '../users/user-store.ts';
import type { Authenticators } from './create-authenticators.ts';
import type { RefreshOutcome, UserRefresh } from './user-refresh.ts';

/** Checks logins with their provider while they are used: who is gone there is logged out here. */
export interface LoginRevalidation {
  /** The login as it is now, or undefined when it has ended at its provider. */
  revalidate(login: Login): Promise<Login | undefined>;
  /** Whether a caller with a token still has a login at a provider, or never needed one. */
  hasCurrentLogin(caller: Pick<Caller, 'user' | 'accessToken'>): Promise<boolean>;
  /** Asks the providers now. Throws `forbidden` when none of them knows the user any more. */
  requireCurrentLogin(user: User): Promise<void>;
}

const cachedUsers = 10_000;

export function createLoginRevalidation(deps: {
  readonly refresh: UserRefresh;
  readonly authenticators: Pick<Authenticators, 'list' | 'find'>;
  readonly logins: Pick<LoginSessions, 'find' | 'endAllOfIdentity' | 'end'>;
  readonly identities: Pick<IdentityStore, 'listForUser'>;
  readonly database: ChangeSource;
  readonly log: Logger;
}): LoginRevalidation {
  const { refresh, authenticators, logins, identities, log } = deps;
  const linked = createChangeAwareCache<readonly Identity[], never>({
    changes: watchChanges(deps.database),
    max: cachedUsers,
  });

  async function settle(
    outcome: RefreshOutcome,
    { user, identityId }: { readonly user: User; readonly identityId: string | undefined },
  ): Promise<boolean> {
    if (outcome.outcome !== 'login_required') return true;
    // They share what the provider gave: none of them could be confirmed any more.
    const ended = identityId === undefined ? 0 : await logins.endAllOfIdentity(identityId);
    if (ended > 0) {
      log.info({ user: user.name, ended, reason: outcome.message }, 'logins ended at provider');
    }
    return false;
  }

  async function revalidate(login: Login): Promise<Login | undefined> {
    const { session, user } = login;
    const { authenticator, identityId } = session;
    const outcome = await refresh.refreshIfDue({ user, authenticator, identityId });
    if (!(await settle(outcome, { user, identityId }))) {
      // A login without an identity, or one that was linked again in the meantime.
      await logins.end(session.sessionId);
      return undefined;
    }
    return outcome.outcome === 'updated' ? { session, user: outcome.user } : login;
  }

  function canRefresh(): boolean {
    return authenticators.list.some(({ authenticator }) => authenticator.refreshUser !== undefined);
  }

  async function anyIsCurrent(
    user: User,
    known: readonly Identity[],
    ask: UserRefresh['refreshIfDue'],
  ): Promise<boolean> {
    if (known.length === 0) return true;
    for (const { id: identityId, authenticator } of known) {
      const outcome = await ask({ user, authenticator, identityId });
      if (await settle(outcome, { user, identityId })) return true;
    }
    return false;
  }

  /** The identities whose authenticators are still configured. */
  async function identitiesOf({ id }: User): Promise<Identity[]> {
    const all = await linked.getOrLoad(id, () => identities.listForUser(id));
    return all.filter(({ authenticator }) => authenticators.find(authenticator) !== undefined);
  }

  return {
    revalidate,

    async hasCurrentLogin({ user, accessToken }) {
      // A server's own token speaks for the server: it reports activity while its user is away.
      if (user === undefined || accessToken?.server !== undefined) return true;
      const sessionId = accessToken?.sessionId;
      const login = sessionId === undefined ? undefined : await logins.find(sessionId);
      if (login !== undefined) return (await revalidate(login)) !== undefined;
      if (sessionId !== undefined || !canRefresh()) return true;
      return await anyIsCurrent(user, await identitiesOf(user), refresh.refreshIfDue);
    },

    async requireCurrentLogin(user) {
      if (await anyIsCurrent(user, await identitiesOf(user), refresh.refreshNow)) return;
      throw new HubError('forbidden', text`Your login has ended at the login provider.`, {
        hint: text`Log in again, then try once more.`,
      });
    },
  };
}

/** A caller who is logged in with a browser. */
export interface LoginCaller extends Caller {
  readonly user: User;
  readonly sessionId: string;
}

/** The user of a login as a caller, with everything the user may do now. */
export async function callerOfLogin(
  { user, session }: Login,
  authorizer: Pick<Authorizer, 'scopesOfOwner'>,
): Promise<LoginCaller> {
  const owner = { kind: 'user', name: user.name } as const;
  return {
    owner,
    user,
    scopes: await authorizer.scopesOfOwner(owner),
    sessionId: session.sessionId,
  };
}
