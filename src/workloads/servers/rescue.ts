import { existsSync } from 'node:fs';
import type { SpawnerConfig } from '../../platform/config/config.ts';
import { programFile } from '../../platform/files/program-folder.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { AppAccess } from './app-access.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** The file browser that comes with the hub. */
const fileBrowser = programFile('examples/workspace/workspace');

/**
 * The command with which files can be removed, where the home of a server has no room left for its own command;
 * undefined where it has, or nobody knows.
 */
export async function rescueCommand(
  start: Pick<SpawnRequest, 'workingDirectory' | 'profile'>,
  deps: {
    readonly config: Pick<SpawnerConfig, 'rescue_cmd' | 'home_min_free'>;
    readonly access: AppAccess['access'];
    readonly spawner: Pick<SpawnerSet, 'homeSpace'>;
  },
): Promise<readonly string[] | undefined> {
  const { rescue_cmd: command = defaultCommand(deps.access), home_min_free } = deps.config;
  if (command.length === 0) return undefined;
  const space = await deps.spawner.homeSpace(start);
  return space !== undefined && space.freeBytes < home_min_free ? command : undefined;
}

function defaultCommand(access: AppAccess['access']): readonly string[] {
  if (!existsSync(fileBrowser)) return [];
  const command = [process.execPath, fileBrowser];
  return access === 'gateway' ? [...command, '{socket}'] : ['hub-singleuser', '--', ...command];
}
