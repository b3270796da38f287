import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { offers } from '../../../test/support/requires.ts';
import { testHubId } from '../../../test/support/test-hub-id.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { SpawnedServer, Spawner } from '../../plugin/host/spawner.ts';
import { type Cgroups, holdableLimits, noCgroups, systemCgroups } from '../processes/cgroup.ts';
import { findHierarchies } from '../processes/cgroup-hierarchies.ts';
import { createLocalProcessSpawner } from './local-process-spawner.ts';

const mebibyte = 1024 ** 2;
let directory: string;
let spawners: Spawner[];
let started: SpawnedServer[];
let lines: string[];
let warnings: string[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'limits-'));
  [spawners, started, lines, warnings] = [[], [], [], []];
});
afterEach(async () => {
  const signal = AbortSignal.timeout(60_000);
  const [spawner] = spawners;
  for (const { state } of started) await spawner?.stop(state, { graceMs: 0, signal });
  await Promise.all(spawners.map((each) => each[Symbol.asyncDispose]?.()));
  await rm(directory, { recursive: true });
});

function createSpawner(cgroups: Cgroups = systemCgroups): Spawner {
  const ignore = () => undefined;
  const spawner = createLocalProcessSpawner({
    log: {
      debug: ignore,
      info: ignore,
      warn: (_fields, message) => warnings.push(message),
      error: ignore,
    },
    hubId: testHubId,
    runtimeDirectory: join(directory, 'run'),
    logDirectory: join(directory, 'logs'),
    memoryCheckMs: 20,
    listenPatienceMs: 0,
    cgroups,
  });
  spawners.push(spawner);
  return spawner;
}

async function start(spawner: Spawner, changed: Partial<SpawnRequest>): Promise<SpawnedServer> {
  const server = await spawner.start(
    createSpawnRequest({
      environment: { PATH: env['PATH'] ?? '' },
      workingDirectory: join(directory, 'home'),
      onOutput: (line) => lines.push(line),
      ...changed,
    }),
  );
  started.push(server);
  return server;
}

async function seen(text: string): Promise<void> {
  await vi.waitFor(() => expect(lines.join('\n')).toContain(text), {
    timeout: 60_000,
    interval: 20,
  });
}

const usesMemory = (megabytes: number) => [
  execPath,
  fileURLToPath(new URL('../../../fixtures/apps/uses-memory.ts', import.meta.url)),
  String(megabytes),
];
/** Takes memory when there is a file `go`. */
const usesMemoryLater = (megabytes: number) => [
  'sh',
  '-c',
  'echo waiting; while [ ! -e go ]; do sleep 0.05; done; exec "$@"',
  'sh',
  ...usesMemory(megabytes),
];

/** The folders of a server's cgroups that are there. */
function cgroupsOf({ state }: SpawnedServer): string[] {
  const name = readFileSync(`/proc/${state['pid']}/cgroup`, 'utf8').match(
    /hub-[0-9a-f]{24}-\w+/,
  )?.[0];
  const { own, controlled, places } = findHierarchies();
  const bases = [own, controlled, ...Object.values(places).map(({ folder }) => folder)];
  return [...new Set(bases)]
    .filter((base) => base !== undefined)
    .map((base) => join(base, name ?? ''));
}

const held = holdableLimits();
const holds = (limit: Parameters<typeof held.has>[0]) =>
  offers(`cgroups for ${limit}`, held.has(limit));

describe.runIf(holds('memoryBytes'))('where the hub may write cgroups for memory', () => {
  test('a server over its limit is ended by the kernel, and why is told', async () => {
    const server = await start(createSpawner(), {
      command: usesMemory(400),
      limits: { memoryBytes: 200 * mebibyte },
    });
    expect(await server.exited).toEqual({
      code: null,
      signal: 'SIGKILL',
      reason: 'out of memory at 200 MiB',
    });
    expect(lines.join('\n')).not.toContain('holding');
    await seen('[hub] the server is ended: out of memory at 200 MiB');
    expect(warnings).not.toContainEqual(expect.stringContaining('the hub can write no cgroup'));
  });

  test('a server of which one process is ended goes on, and says what happened', async () => {
    const server = await start(createSpawner(), {
      command: ['sh', '-c', '"$@"; echo went on; sleep 600', 'sh', ...usesMemory(400)],
      limits: { memoryBytes: 200 * mebibyte },
    });
    await seen('went on');
    await seen('[hub] a process of the server was ended: out of memory at 200 MiB');
    expect(await spawners[0]?.poll(server.state)).toEqual({ running: true });
  });

  test('the next hub knows why a server has ended', async () => {
    const limits = { memoryBytes: 200 * mebibyte };
    const former = createSpawner();
    const { state } = await start(former, { command: usesMemoryLater(400), limits });
    await seen('waiting');
    await former[Symbol.asyncDispose]?.();
    const next = createSpawner();
    const found = await next.restore(state, { onOutput: (line) => lines.push(line) });
    const home = join(directory, 'home');
    await writeFile(join(home, 'go'), '');
    expect(await found?.exited).toMatchObject({ reason: 'out of memory at 200 MiB' });
  });

  test('nothing is left of the cgroups of a server that has ended', async () => {
    const spawner = createSpawner();
    const command = ['sh', '-c', 'echo here; sleep 600 & sleep 600'];
    const limits = { memoryBytes: 200 * mebibyte, cpuCores: 1, processes: 20 };
    const server = await start(spawner, { command, limits });
    await seen('here');
    const folders = cgroupsOf(server);
    expect(folders.filter(existsSync).length).toBeGreaterThan(0);
    await spawner.stop(server.state, { graceMs: 100, signal: AbortSignal.timeout(60_000) });
    expect(folders.filter(existsSync)).toEqual([]);
  });
});

test.runIf(holds('processes'))('a server starts no more processes than its limit', async () => {
  const command = ['sh', '-c', 'for i in $(seq 40); do sleep 600 & done; sleep 600'];
  await start(createSpawner(), { command, limits: { processes: 20 } });
  await seen('[hub] the server could not start another process: its limit is 20');
});

test.runIf(holds('cpuCores'))(
  'a server gets no more of the processors than its limit',
  async () => {
    const command = ['sh', '-c', 'echo here; while :; do :; done'];
    const server = await start(createSpawner(), { command, limits: { cpuCores: 0.1 } });
    await seen('here');
    const folder = cgroupsOf(server).find(
      (each) =>
        existsSync(join(each, 'cpu.stat')) &&
        /^nr_throttled/m.test(readFileSync(join(each, 'cpu.stat'), 'latin1')),
    );
    await vi.waitFor(
      () => {
        const stat = readFileSync(join(folder ?? '', 'cpu.stat'), 'latin1');
        expect(Number(/^nr_throttled (\d+)$/m.exec(stat)?.[1])).toBeGreaterThan(2);
      },
      { timeout: 60_000, interval: 50 },
    );
  },
);

describe('where the hub may write no cgroup', () => {
  test('memory is polled, which is said once', async () => {
    const spawner = createSpawner(noCgroups);
    const limits = { memoryBytes: 200 * mebibyte };
    for (const serverId of ['one', 'two']) {
      const server = await start(spawner, { serverId, command: usesMemory(300), limits });
      expect(await server.exited).toMatchObject({ reason: 'out of memory at 200 MiB' });
    }
    await seen('[hub] the server is ended: it uses');
    expect(lines.find((line) => line.startsWith('[hub]'))).toMatch(/its limit is 200 MiB$/);
    const said = warnings.filter((each) => each.startsWith('the hub can write no cgroup'));
    expect(said).toHaveLength(1);
  });
});

test.each([
  [{ limits: { gpus: 1 } }, 'gives out no GPUs'],
  [{ volumes: [{ source: 'x', target: '/x', readOnly: false }] }, 'mounts no volumes'],
])('what no process of the machine can be given is refused: %j', async (asked, message) => {
  await expect(start(createSpawner(), asked)).rejects.toThrow(message);
});

test('of a server without limits the kernel is not asked again and again', async () => {
  const asked: string[] = [];
  const events = (tag: string) => {
    asked.push(tag);
    return systemCgroups.events(tag);
  };
  const spawner = createSpawner({ ...systemCgroups, events });
  const free = await start(spawner, { command: ['sleep', '60'], serverId: 'free', limits: {} });
  const limited = await start(spawner, {
    command: ['sleep', '60'],
    serverId: 'limited',
    limits: { processes: 100 },
  });
  const ofTag = ({ state }: SpawnedServer) => asked.filter((tag) => tag === state['tag']).length;
  await vi.waitFor(() => expect(ofTag(limited)).toBeGreaterThan(1), 10_000);
  expect(ofTag(free)).toBe(0);
});
