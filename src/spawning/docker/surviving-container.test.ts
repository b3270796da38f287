import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { busyImage, hasDocker, useDocker } from '../../../test/support/docker-engine.ts';
import { startEngineRelay } from '../../../test/support/engine-relay.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';
import { dockerPlugin } from './docker-plugin.ts';

const command = ['sh', '-c', 'trap exit TERM; sleep 600 & wait'];
const ending = { graceMs: 0, signal: AbortSignal.timeout(60_000) };

describe.runIf(hasDocker())('a container that survives its end', () => {
  const engine = useDocker();

  const create = async (host: string) =>
    (await createTestSpawner(dockerPlugin, { host, image: busyImage, network: 'host' })).spawner;

  test('though the engine says that it ended it is told of, and runs no second time', async () => {
    await using relay = await startEngineRelay(engine.host);
    const spawner = await create(relay.host);
    await using _disposed = { [Symbol.asyncDispose]: async () => spawner[Symbol.asyncDispose]?.() };
    const request = createSpawnRequest({ command });
    const { state } = await spawner.start(request);
    const short = String(state['container']).slice(0, 12);

    relay.swallow(/^(?:POST .*\/stop|DELETE .*\/containers\/)/);
    await expect(spawner.stop(state, ending)).rejects.toThrow(
      `The container ${short} is still there, though the engine says that it removed it.`,
    );
    expect(relay.swallowed.map((what) => what.split(' ')[0])).toEqual(['POST', 'DELETE']);
    expect(await spawner.poll(state)).toEqual({ running: true });
    await expect(spawner.start(createSpawnRequest({ command }))).rejects.toThrow(
      `The container ${short} is still there`,
    );
    const running = await engine.docker.listContainers();
    expect(running.map(({ Id }) => Id)).toEqual([state['container']]);

    relay.swallow(/^nothing$/);
    const { state: next } = await spawner.start(createSpawnRequest({ command }));
    expect(next['container']).not.toBe(state['container']);
    expect(await engine.docker.listContainers()).toHaveLength(1);
    await spawner.stop(next, ending);
    expect(await engine.docker.listContainers({ all: true })).toEqual([]);
  });
});
