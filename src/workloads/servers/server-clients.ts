import type { ServerClientSource } from '../../identity/oauth/clients/client-registry.ts';
import type { UserStore } from '../../identity/users/user-store.ts';
import { serverPrefix } from './server.ts';
import type { ServerStore } from './server-store.ts';

/** Users' servers as OAuth clients of the hub: each that is on record, running or not. */
export function createServerClients(deps: {
  readonly users: Pick<UserStore, 'findByName'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly basePath: string;
  /** `Spawner.oauth_client_allowed_scopes`. */
  readonly allowedScopes: readonly string[];
}): ServerClientSource {
  const { users, serverStore: servers, basePath, allowedScopes } = deps;
  return {
    allowedScopes,
    isUser: async (userName) => (await users.findByName(userName)) !== undefined,
    async find(userName, serverName) {
      const server = await servers.find(userName, serverName);
      return server && { id: server.id, prefix: serverPrefix(basePath, userName, serverName) };
    },
  };
}
