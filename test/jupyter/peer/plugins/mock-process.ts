import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Spawner, SpawnerPlugin } from '../../../../src/plugin/plugin.ts';
import { localProcessPlugin } from '../../../../src/spawning/local-process/local-process-plugin.ts';

const optionsSchema = z.strictObject({
  mode: z.enum(['quick', 'slow', 'never', 'bad', 'slow-bad']).default('quick'),
  delay: z.number().default(2),
  form: z.boolean().default(false),
});

/** Servers as processes of this machine that start late, never or not at all, as a test wants them. */
const plugin: SpawnerPlugin<z.output<typeof optionsSchema>> = {
  kind: 'spawner',
  name: 'mock-process',
  section: 'MockProcessSpawner',
  optionsSchema,

  async create({ mode, delay, form }, host) {
    const processes = await localProcessPlugin.create(
      localProcessPlugin.optionsSchema.parse({}),
      host,
    );
    const spawner: Spawner = {
      ...processes,
      async start(request) {
        const { signal } = request;
        if (mode === 'bad') throw new Error("I don't work!");
        if (mode === 'slow-bad') {
          await sleep(500, undefined, { signal });
          throw new Error("I don't work!");
        }
        if (mode === 'never') await sleep(3_600_000, undefined, { signal });
        if (mode === 'slow') await sleep(delay * 1000, undefined, { signal });
        return processes.start(request);
      },
      async stop(state, options) {
        if (mode === 'slow') await sleep(delay * 1000, undefined, { signal: options.signal });
        await processes.stop(state, options);
      },
    };
    if (!form) return spawner;
    return {
      ...spawner,
      optionsForm: {
        fields: [
          { name: 'energy', label: 'IMAFORM', type: 'text' },
          { name: 'bounds', label: 'Bounds', type: 'text' },
        ],
      },
    };
  },
};

export default plugin;
