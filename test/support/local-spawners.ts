import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterEach, beforeEach, vi } from 'vitest';
import type { SpawnRequest } from '../../src/plugin/host/spawn-request.ts';
import type { SpawnedServer, Spawner } from '../../src/plugin/host/spawner.ts';
import {
  createLocalProcessSpawner,
  type LocalProcessSpawnerOptions,
} from '../../src/spawning/local-process/local-process-spawner.ts';
import { readServerState } from '../../src/spawning/local-process/server-state.ts';
import { waitUntilReady } from '../../src/spawning/processes/readiness-probe.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { fixtureApp } from './server-hub.ts';
import { testHubId } from './test-hub-id.ts';

const ignore = () => undefined;
export const silentLog = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Spawners of local processes; what a test started ends with it. */
export function useLocalSpawners() {
  const lines: string[] = [];
  const spawners: Spawner[] = [];
  const started: { spawner: Spawner; server: SpawnedServer }[] = [];
  let directory = '';

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spawner-'));
    await chmod(directory, 0o711);
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map(({ spawner, server }) => stop(spawner, server)));
    await Promise.all(spawners.splice(0).map((each) => each[Symbol.asyncDispose]?.()));
    await rm(directory, { recursive: true });
    lines.length = 0;
  });

  function createSpawner(
    listenPatienceMs = 200,
    changed: Partial<LocalProcessSpawnerOptions> = {},
  ): Spawner {
    const spawner = createLocalProcessSpawner({
      log: silentLog,
      hubId: testHubId,
      runtimeDirectory: join(directory, 'run'),
      logDirectory: join(directory, 'logs'),
      memoryCheckMs: 50,
      listenPatienceMs,
      ...changed,
    });
    spawners.push(spawner);
    return spawner;
  }

  function request(changed: Partial<SpawnRequest>): SpawnRequest {
    return createSpawnRequest({
      command: fixtureApp('web-server'),
      environment: { PATH: env['PATH'] ?? '', USER: 'ann' },
      workingDirectory: join(directory, 'homes', 'ann'),
      onOutput: (line) => lines.push(line),
      ...changed,
    });
  }

  async function start(
    spawner: Spawner,
    changed: Partial<SpawnRequest> = {},
  ): Promise<SpawnedServer> {
    const server = await spawner.start(request(changed));
    started.push({ spawner, server });
    return server;
  }

  /** The line of a server's output that holds a text. */
  function seen(text: string): Promise<string> {
    return vi.waitFor(
      () => {
        const line = lines.find((each) => each.includes(text));
        if (line === undefined) throw new Error(`no line with ${text} among ${lines.join('\n')}`);
        return line;
      },
      { timeout: 240_000, interval: 20 },
    );
  }

  /** The folder of a test is there while the test runs. */
  return { directory: () => directory, lines, createSpawner, request, start, stop, seen };
}

function stop(spawner: Spawner, { state }: SpawnedServer, graceMs = 5_000): Promise<void> {
  return spawner.stop(state, { graceMs, signal: AbortSignal.timeout(30_000) });
}

export function isReady({ url }: SpawnedServer) {
  return waitUntilReady({ url, path: '/', timeoutMs: 30_000 });
}

export function pidOf({ state }: SpawnedServer): number {
  return readServerState(state)?.pid ?? 0;
}
