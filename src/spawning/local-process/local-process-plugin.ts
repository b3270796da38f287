import { resolve } from 'node:path';
import { z } from 'zod';
import type { SpawnerPlugin } from '../../plugin/host/spawner.ts';
import { homeSpaceOf } from './home-space.ts';
import { createLocalProcessSpawner } from './local-process-spawner.ts';
import { withPausing } from './pausing.ts';

const optionsSchema = z.strictObject({
  log_dir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder for the servers' output; logs in the runtime directory by default."),
  memory_check_interval: z
    .number()
    .positive()
    .default(2)
    .describe('Seconds between two checks of the memory of servers with a limit.'),
});

/** The spawner that is built in: each server is a process of this machine. */
export const localProcessPlugin: SpawnerPlugin<z.output<typeof optionsSchema>> = {
  kind: 'spawner',
  name: 'local-process',
  section: 'LocalProcessSpawner',
  optionsSchema,
  create(options, { log, hubId, runtimeDirectory }) {
    const spawner = createLocalProcessSpawner({
      log,
      hubId,
      runtimeDirectory: resolve(runtimeDirectory),
      logDirectory: resolve(runtimeDirectory, options.log_dir ?? 'logs'),
      memoryCheckMs: options.memory_check_interval * 1000,
    });
    return {
      ...withPausing(spawner),
      homeSpace: ({ workingDirectory }) => homeSpaceOf(workingDirectory),
    };
  },
};
