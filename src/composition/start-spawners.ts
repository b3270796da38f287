import { resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { spawnerOf } from '../config/profile-spawner.ts';
import { createPluginLog } from '../logging/plugin-log.ts';
import { startSpawner } from '../plugin-host/create-plugins.ts';
import type { PreparedPlugins } from '../plugin-host/prepare-plugins.ts';
import { noSpawner } from '../servers/no-spawner.ts';
import type { ServerStore } from '../servers/server-store.ts';
import { joinSpawners, type NamedSpawner, type SpawnerSet } from '../servers/spawner-set.ts';

/** Starts every spawner of the configuration; what was started is closed again when one does not start. */
export async function startSpawners({
  plugins,
  config,
  hubId,
  servers,
  log,
}: {
  readonly plugins: Pick<PreparedPlugins, 'spawners'>;
  readonly config: Config;
  readonly hubId: string;
  readonly servers: Pick<ServerStore, 'activeAmong'>;
  readonly log: Logger;
}): Promise<SpawnerSet> {
  const runtimeDirectory = resolve(config.directory, config.Hub.log_dir, 'servers');
  const started: NamedSpawner[] = [];
  try {
    for (const prepared of plugins.spawners) {
      const { name } = prepared;
      const spawner = await startSpawner(prepared, {
        log: createPluginLog(log, { spawner: name }),
        runtimeDirectory,
        hubId,
        activeServers: (serverIds) => servers.activeAmong(serverIds),
      });
      started.push({ name, spawner });
    }
  } catch (error) {
    await Promise.allSettled(started.map(({ spawner }) => spawner[Symbol.asyncDispose]?.()));
    throw error;
  }
  const [first = { name: '', spawner: noSpawner }, ...others] = started;
  return joinSpawners([first, ...others], (name) => {
    const profile = config.Spawner.profiles.find((each) => each.name === name);
    return started.length === 0 ? first.name : spawnerOf(profile, config.spawners);
  });
}
