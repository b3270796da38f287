import { pino } from 'pino';
import { createServerStore } from '../../src/workloads/servers/server-store.ts';
import type { LocalServerState } from '../../src/spawning/local-process/server-state.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { databaseFile } from './hub.ts';

/**
 * Records servers as a machine that lost its power leaves them: as running, their processes gone. The
 * next start has the most to do with such ones.
 */
export async function recordServers(
  directory: string,
  userNames: readonly string[],
): Promise<void> {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(`sqlite:${databaseFile}`, { directory, log });
  const users = createUserStore(database);
  const servers = createServerStore(database);
  for (const [index, name] of userNames.entries()) {
    const user = await users.getByName(name);
    const { id } = await servers.ensure(user.id, '');
    const url = `http://127.0.0.1:${20_000 + index}`;
    const spawnerState: LocalServerState = {
      serverId: id,
      // Beyond what Linux gives to any process.
      pid: 2 ** 22 + 1 + index,
      startTime: '1',
      url,
      logFile: `servers/${name}.log`,
      tag: `server-${id}#hub#${index}`,
    };
    await servers.moveTo(id, 'starting');
    await servers.moveTo(id, 'running', { url, spawnerState: { ...spawnerState } });
  }
}
