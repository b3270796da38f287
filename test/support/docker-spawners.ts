import type { ContainerInspectInfo } from 'dockerode';
import { afterEach } from 'vitest';
import type { SpawnRequest } from '../../src/plugin/host/spawn-request.ts';
import type { Spawner, SpawnerHost } from '../../src/plugin/host/spawner.ts';
import { dockerPlugin } from '../../src/spawning/docker/docker-plugin.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { busyImage, useDocker } from './docker-engine.ts';
import { createTestSpawner, type TestSpawner } from './test-spawner.ts';

/** A command that prints `ready` and waits for its end. */
export const sleeps = ['sh', '-c', 'trap exit TERM; echo ready; sleep 600 & wait'];

/** Docker spawners at an engine, which has no containers after each test. */
export interface DockerWorld {
  readonly engine: ReturnType<typeof useDocker>;
  /** Creates a spawner with what it logs. */
  create(options?: object, changed?: Partial<SpawnerHost>): Promise<TestSpawner>;
  /** A start of a server that prints `ready` and waits for its end. */
  request(changed?: Partial<SpawnRequest>): SpawnRequest;
  /** The container of a server. */
  inspect(state: Readonly<Record<string, unknown>>): Promise<ContainerInspectInfo>;
  signal(): AbortSignal;
}

/** Starts an engine for the tests of the surrounding `describe` and ends it after them. */
export function useDockerSpawners(): DockerWorld {
  const engine = useDocker();
  const { docker, host } = engine;
  const spawners: Spawner[] = [];

  afterEach(async () => {
    for (const spawner of spawners.splice(0)) await spawner[Symbol.asyncDispose]?.();
    for (const { Id } of await docker.listContainers({ all: true })) {
      await docker.getContainer(Id).remove({ force: true, v: true });
    }
  });

  return {
    engine,
    async create(options = {}, changed = {}) {
      const created = await createTestSpawner(
        dockerPlugin,
        { host, image: busyImage, network: 'host', ...options },
        changed,
      );
      spawners.push(created.spawner);
      return created;
    },
    request: (changed = {}) => createSpawnRequest({ command: sleeps, ...changed }),
    inspect: (state) => docker.getContainer(String(state['container'])).inspect(),
    signal: () => AbortSignal.timeout(30_000),
  };
}
