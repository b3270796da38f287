import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { busyImage, hasDocker } from '../../../test/support/docker-engine.ts';
import { useDockerSpawners } from '../../../test/support/docker-spawners.ts';
import { startEngineRelay } from '../../../test/support/engine-relay.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createTestSpawner, testHubId } from '../../../test/support/test-spawner.ts';
import { dockerPlugin } from './docker-plugin.ts';

const command = ['sh', '-c', 'trap exit TERM; sleep 600 & wait'];
const ending = { graceMs: 0, signal: AbortSignal.timeout(60_000) };

describe.runIf(hasDocker())('a container that is there after its server', () => {
  const { engine, create, request, inspect, signal } = useDockerSpawners();
  const { docker } = engine;

  const createAt = async (host: string) =>
    (await createTestSpawner(dockerPlugin, { host, image: busyImage, network: 'host' })).spawner;

  test('though the engine says that it ended it is told of, and runs no second time', async () => {
    await using relay = await startEngineRelay(engine.host);
    const spawner = await createAt(relay.host);
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

  test('gives way to the next start', async () => {
    const { spawner } = await create();
    const first = await spawner.start(request());
    const second = await (await create()).spawner.start(request());
    expect(await spawner.poll(first.state)).toMatchObject({ running: false });
    expect(await spawner.poll(second.state)).toEqual({ running: true });
  });

  test('is kept after its stop where that is configured, until the next start or its removal', async () => {
    const { spawner } = await create({ remove: false });
    const first = await spawner.start(request());
    await spawner.stop(first.state, { graceMs: 5_000, signal: signal() });
    expect((await inspect(first.state)).State.Running).toBe(false);
    const second = await spawner.start(request());
    await expect(inspect(first.state)).rejects.toMatchObject({ statusCode: 404 });
    await spawner.stop(second.state, { graceMs: 5_000, signal: signal() });
    const identity = createSpawnRequest({ serverId: 'server-1' });
    await spawner.delete?.(identity, { withUser: false, signal: signal() });
    expect(await docker.listContainers({ all: true })).toEqual([]);
  });

  test('that is left over is removed, and no other container', async () => {
    const { spawner } = await create();
    const active = await spawner.start(request({ serverId: 'active', objectName: 'active' }));
    await spawner.start(request({ serverId: 'stopped', objectName: 'stopped' }));
    await (await create({}, { hubId: 'another-hub' })).spawner.start(
      request({ serverId: 'stopped', objectName: 'other' }),
    );
    const next = await create({}, { activeServers: async () => new Set(['active']) });
    void next.spawner.open?.();
    await until(
      async () => (await docker.listContainers()).length === 2,
      'one container is removed',
    );
    const left = await docker.listContainers();
    expect(
      left.map(({ Labels }) => `${Labels['hub.id']} ${Labels['hub.server-id']}`).toSorted(),
    ).toEqual([`${testHubId} active`, 'another-hub stopped']);
    expect(await spawner.poll(active.state)).toEqual({ running: true });
  });
});
