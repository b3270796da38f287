import type { Logger } from 'pino';
import { mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { Login } from '../../identity/sessions/login-sessions.ts';
import { actAs } from '../../platform/audit/actor.ts';
import type { ServerStore } from './server-store.ts';
import type { UserServers } from './user-servers.ts';

/**
 * Begins to start the stopped default server of a user who has just logged in and may start it. Resolves when that is
 * begun or refused, and never rejects: no login depends on it.
 */
export type StartAtLogin = (login: Login) => Promise<void>;

/** Does nothing unless `Spawner.start_at_login` is set. */
export function createStartAtLogin(deps: {
  readonly isChosen: boolean;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membershipFor'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly servers: Pick<UserServers, 'isConfigured' | 'start' | 'launchedName'>;
  readonly log: Logger;
}): StartAtLogin {
  const { authorizer, serverStore, servers, log } = deps;
  if (!deps.isChosen || !servers.isConfigured) return async () => undefined;
  const { launchedName: serverName } = servers;

  async function start({ user }: Login): Promise<void> {
    const scopes = await authorizer.scopesOfOwner({ kind: 'user', name: user.name });
    const membership = await authorizer.membershipFor(scopes);
    const resource = { kind: 'server', userName: user.name, serverName } as const;
    if (!mayAccess(scopes, 'start:servers', resource, membership)) return;
    const server = await serverStore.find(user.name, serverName);
    if ((server?.state ?? 'stopped') !== 'stopped') return;
    await servers.start({ user, serverName, mayStartInMaintenance: false });
  }

  return async (login) => {
    const { user, session } = login;
    const { sessionId, address } = session;
    try {
      await actAs({ kind: 'user', name: user.name, sessionId, address }, () => start(login));
    } catch (error) {
      log.warn({ err: error, user: user.name }, 'server could not be started at login');
    }
  };
}
