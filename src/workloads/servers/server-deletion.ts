import { randomUUID } from 'node:crypto';
import type { SystemAccountStore } from '../../identity/users/system-account-store.ts';
import type { User } from '../../identity/users/user-store.ts';
import type { UserVolumeStore } from '../../identity/users/user-volume-store.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { HubError, messageOf } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { identityOf } from './launch-plan.ts';
import type { Server } from './server.ts';
import type { ServerStore } from './server-store.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** Removes for ever what spawners keep of stopped servers. Throws `upstream_failed` when one cannot. */
export interface ServerDeletion {
  ofServer(server: Server): Promise<void>;
  /** Of all servers of a user who is about to be deleted, and of the user. */
  ofUser(user: Pick<User, 'id' | 'name'>): Promise<void>;
}

/** How long a spawner has to delete what it keeps of a server. */
const deleteTimeoutMs = 60_000;

export function createServerDeletion(deps: {
  readonly spawner: Pick<SpawnerSet, 'delete'>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly systemAccounts: Pick<SystemAccountStore, 'find'>;
  readonly userVolumes: Pick<UserVolumeStore, 'list'>;
}): ServerDeletion {
  const { spawner, serverStore: store, systemAccounts: accounts, userVolumes } = deps;

  async function deleteOne(
    server: Pick<Server, 'id' | 'userId' | 'userName' | 'name'>,
    { withUser }: { readonly withUser: boolean },
  ): Promise<void> {
    const identity = {
      ...identityOf(server, await accounts.find(server.userId)),
      givenVolumes: await userVolumes.list(server.userId),
    };
    try {
      await spawner.delete?.(identity, { withUser, signal: timeLimit(deleteTimeoutMs) });
    } catch (error) {
      if (error instanceof HubError) throw error;
      const message = text`What is kept of the server could not be deleted: ${messageOf(error)}`;
      throw new HubError('upstream_failed', message, { cause: error });
    }
  }

  return {
    ofServer: (server) => deleteOne(server, { withUser: false }),

    async ofUser(user) {
      const servers = await store.listOfUser(user.name);
      // What is kept of the user outlives the last of their servers.
      const any = { id: randomUUID(), userId: user.id, userName: user.name, name: '' };
      for (const server of servers.length === 0 ? [any] : servers) {
        await deleteOne(server, { withUser: true });
      }
    },
  };
}
