import type { Spawner, SpawnerHost, SpawnerPlugin } from '../../src/plugin/host/spawner.ts';
import { testSurroundings } from '../contract/test-host.ts';

/** Id of the hub that a test spawner is of. */
export const testHubId = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

export interface TestSpawner {
  readonly spawner: Spawner;
  /** Message and fields of each line that it logged. */
  readonly logged: readonly string[];
}

/** A spawner as the hub makes it of the options of its section, not opened. */
export async function createTestSpawner<Options, ProfileOptions>(
  plugin: SpawnerPlugin<Options, ProfileOptions>,
  options: object,
  changed: Partial<SpawnerHost> = {},
): Promise<TestSpawner> {
  const logged: string[] = [];
  const record = (fields: object, message: string) =>
    void logged.push(`${message} ${JSON.stringify(fields)}`);
  const spawner = await plugin.create(plugin.optionsSchema.parse(options), {
    ...testSurroundings,
    log: { debug: record, info: record, warn: record, error: record },
    runtimeDirectory: '/nowhere',
    hubId: testHubId,
    activeServers: async (ids) => new Set(ids),
    ...changed,
  });
  return { spawner: spawner as Spawner, logged };
}
