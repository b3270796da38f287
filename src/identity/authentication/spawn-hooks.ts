import type { Logger } from 'pino';
import type { AuthenticatedUser } from '../../plugin/host/authenticator.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { Owner } from '../rbac/owner.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { Authenticators, NamedAuthenticator } from './create-authenticators.ts';
import { type LoginRevalidation, toAuthenticatedUser } from './user-refresh.ts';

/** What authenticators contribute to the start of a server. */
export interface SpawnPreparation {
  readonly environment: Readonly<Record<string, string>>;
  /** What each keeps of the user, by its name; secrets among it. */
  readonly authStates: SpawnRequest['authStates'];
}

/** What authenticators have to do with the servers of their users. */
export interface SpawnHooks {
  /** Runs before a server starts; returns what the authenticators add to it, and what they keep of its user. */
  beforeSpawn(user: User, serverName: string, signal: AbortSignal): Promise<SpawnPreparation>;
  /**
   * Runs before a server is stopped because a caller asks for it. Throws `forbidden` when that is its
   * user, whose login has ended at the provider.
   */
  beforeStop(userName: string, askedBy: Owner): Promise<void>;
  /** Runs after a server stopped; what fails is logged. */
  afterStop(userName: string, serverName: string): Promise<void>;
}

export function createSpawnHooks(deps: {
  readonly authenticators: Pick<Authenticators, 'list' | 'find'>;
  readonly identities: Pick<IdentityStore, 'listForUser' | 'findAuthState'>;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly revalidation: Pick<LoginRevalidation, 'requireCurrentLogin'>;
  /** `Authenticator.refresh_pre_spawn`. */
  readonly refreshesBeforeSpawn: boolean;
  /** `Authenticator.refresh_pre_stop`. */
  readonly refreshesBeforeStop: boolean;
  readonly log: Logger;
}): SpawnHooks {
  const { authenticators, identities, users, revalidation, log } = deps;

  /** Each authenticator that knows the user, with the user as it knows them. */
  async function whoKnows(
    user: User,
  ): Promise<{ via: NamedAuthenticator; authenticated: AuthenticatedUser }[]> {
    const linked = await identities.listForUser(user.id);
    const [only, ...others] = authenticators.list;
    if (linked.length === 0 && only !== undefined && others.length === 0) {
      // Made by an administrator, and never logged in: the one way there is will be theirs.
      return [{ via: only, authenticated: { name: user.name } }];
    }
    const known = [];
    for (const identity of linked) {
      const via = authenticators.find(identity.authenticator);
      if (via === undefined) continue;
      const stored = await identities.findAuthState(identity.id);
      known.push({ via, authenticated: toAuthenticatedUser(user, identity, stored) });
    }
    return known;
  }

  return {
    async beforeSpawn(user, serverName, signal) {
      if (deps.refreshesBeforeSpawn) await revalidation.requireCurrentLogin(user);
      const environment: Record<string, string> = {};
      const authStates: Record<string, Readonly<Record<string, unknown>>> = {};
      for (const { via, authenticated } of await whoKnows(user)) {
        const server = { userName: user.name, serverName };
        const additions = await via.authenticator.beforeSpawn?.(authenticated, server, { signal });
        Object.assign(environment, additions?.environment);
        if (authenticated.authState !== undefined) authStates[via.name] = authenticated.authState;
      }
      return { environment, authStates };
    },

    async beforeStop(userName, askedBy) {
      if (!deps.refreshesBeforeStop) return;
      const user = await users.findByName(userName);
      if (user === undefined) return;
      try {
        await revalidation.requireCurrentLogin(user);
      } catch (error) {
        if (askedBy.kind === 'user' && askedBy.name === userName) throw error;
        log.warn({ err: error, user: userName }, 'stopping server without current login');
      }
    },

    async afterStop(userName, serverName) {
      const user = await users.findByName(userName);
      if (user === undefined) return;
      for (const { via, authenticated } of await whoKnows(user)) {
        try {
          await via.authenticator.afterStop?.(authenticated, { userName, serverName });
        } catch (error) {
          const fields = {
            err: error,
            user: userName,
            server: serverName,
            authenticator: via.name,
          };
          log.warn(fields, 'post-stop hook of authenticator failed');
        }
      }
    },
  };
}
