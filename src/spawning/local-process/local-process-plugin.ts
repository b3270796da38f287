import { resolve } from 'node:path';
import { z } from 'zod';
import type { SpawnerPlugin } from '../../plugin/host/spawner.ts';
import { createWarmPool } from '../processes/warm-pool.ts';
import { homeSpaceOf } from './home-space.ts';
import { createLocalProcessSpawner } from './local-process-spawner.ts';
import { withPausing } from './pausing.ts';

const absolutePath = z.string().startsWith('/');

const warmProgram = z.strictObject({
  program: absolutePath.describe('The script that `cmd` of `Spawner` or of a profile starts with.'),
  python: absolutePath.default('/usr/bin/python3').describe('The Python that runs it.'),
  modules: z
    .array(z.string().regex(/^\w+(?:\.\w+)*$/, 'is no name of a module'))
    .min(1)
    .describe('Modules to import in advance, such as `notebook.notebookapp`.'),
  count: z.int().min(1).max(100).default(2).describe('Number of processes kept waiting.'),
});

const optionsSchema = z.strictObject({
  log_dir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder for servers' output; `logs` in the runtime directory by default."),
  memory_check_interval: z
    .number()
    .positive()
    .default(2)
    .describe('Seconds between memory checks of servers with a limit.'),
  warm: z
    .array(warmProgram)
    .default([])
    .describe(
      'Python programs for which processes wait with their modules already imported. A server whose command starts with such a program takes over a waiting process.',
    ),
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
      pool: createWarmPool({ programs: options.warm, log }),
      memoryCheckMs: options.memory_check_interval * 1000,
    });
    return {
      ...withPausing(spawner),
      homeSpace: ({ workingDirectory }) => homeSpaceOf(workingDirectory),
    };
  },
};
