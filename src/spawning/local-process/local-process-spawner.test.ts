import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath, kill } from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { testSurroundings } from '../../../test/contract/test-host.ts';
import { nodeCommand } from '../../../test/support/node-command.ts';
import { sharePrograms } from '../../../test/support/shared-programs.ts';
import type { SpawnRequest } from '../../plugin-host/spawn-request.ts';
import type { SpawnedServer, Spawner } from '../../plugin-host/spawner.ts';
import { noCgroups } from '../../processes/cgroup.ts';
import {
  identifyProcess,
  isSameProcess,
  type ProcessIdentity,
} from '../../processes/process-identity.ts';
import { newTag } from '../../processes/process-tag.ts';
import { directView, type ProcessView } from '../../processes/process-view.ts';
import { waitUntilReady } from '../../processes/readiness-probe.ts';
import { runsAsRoot } from '../../processes/system-user.ts';
import { localProcessPlugin } from './local-process-plugin.ts';
import {
  createLocalProcessSpawner,
  type LocalProcessSpawnerOptions,
} from './local-process-spawner.ts';
import { readServerState, tagFamilyOf } from './server-state.ts';

const ignore = () => undefined;
const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
let directory: string;
let spawners: Spawner[];
let started: { spawner: Spawner; server: SpawnedServer }[];
let lines: string[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spawner-'));
  await chmod(directory, 0o711);
  spawners = [];
  started = [];
  lines = [];
});
afterEach(async () => {
  await Promise.all(started.map(({ spawner, server }) => stop(spawner, server)));
  await Promise.all(spawners.map((each) => each[Symbol.asyncDispose]?.()));
  await rm(directory, { recursive: true });
});

function createSpawner(
  listenPatienceMs = 200,
  changed: Partial<LocalProcessSpawnerOptions> = {},
): Spawner {
  const spawner = createLocalProcessSpawner({
    log,
    hubId: 'hub-1',
    runtimeDirectory: join(directory, 'run'),
    logDirectory: join(directory, 'logs'),
    memoryCheckMs: 50,
    listenPatienceMs,
    ...changed,
  });
  spawners.push(spawner);
  return spawner;
}

function app(name: string, ...rest: string[]): string[] {
  const file = fileURLToPath(new URL(`../../../fixtures/apps/${name}.ts`, import.meta.url));
  return [...nodeCommand, file, ...rest];
}

function request(changed: Partial<SpawnRequest>): SpawnRequest {
  return createSpawnRequest({
    command: app('web-server'),
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

function stop(spawner: Spawner, { state }: SpawnedServer, graceMs = 5_000): Promise<void> {
  return spawner.stop(state, { graceMs, signal: AbortSignal.timeout(30_000) });
}

function isReady({ url }: SpawnedServer) {
  return waitUntilReady({ url, path: '/', timeoutMs: 30_000 });
}

function pidOf({ state }: SpawnedServer): number {
  return readServerState(state)?.pid ?? 0;
}

async function seen(text: string): Promise<string> {
  return vi.waitFor(
    () => {
      const line = lines.find((each) => each.includes(text));
      if (line === undefined) throw new Error(`no line with ${text} among ${lines.join('\n')}`);
      return line;
    },
    { timeout: 30_000, interval: 20 },
  );
}

describe('a local server', () => {
  test('starts on a port of its own, in a directory that is made for it, and stops', async () => {
    const spawner = createSpawner();
    const server = await start(spawner);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await isReady(server)).toEqual({ ready: true, status: 200 });
    expect(await spawner.poll(server.state)).toEqual({ running: true });
    expect((await stat(join(directory, 'homes', 'ann'))).mode & 0o777).toBe(0o700);
    await seen(`listening on ${server.url}`);
    const [usage] = (await spawner.usage?.([server.state])) ?? [];
    expect(usage).toMatchObject({ processes: 1 });

    await stop(spawner, server);
    await stop(spawner, server);
    expect(await spawner.poll(server.state)).toEqual({ running: false });
    expect(await server.exited).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('starts on a Unix socket that no other account can reach, gone afterwards', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { socket: true });
    const path = decodeURIComponent(server.url.replace('http+unix://', ''));
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107);
    expect(await isReady(server)).toEqual({ ready: true, status: 200 });
    expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700);
    await stop(spawner, server);
    await expect(stat(join(path, '..'))).rejects.toThrow('ENOENT');
  });

  test('is told its address in its command too, and has its directory as home', async () => {
    const spawner = createSpawner();
    const command = ['sh', '-c', 'echo "$0 $1 $HOME"; sleep 60', 'at {ip}:{port}', '{other}'];
    const server = await start(spawner, { command });
    const line = await seen('at 127');
    expect(`http://${line.split(' ')[1]}`).toBe(server.url);
    expect(line).toMatch(/ \{other\} .*homes\/ann$/);
  });

  test('is told its address behind a -- too, but not where hub-singleuser tells an app its own', async () => {
    const spawner = createSpawner();
    const script = 'echo "$0 $*"; sleep 60';
    const plain = await start(spawner, { command: ['sh', '-c', script, '--', 'plain {port}'] });
    const plainLine = await seen('plain');
    expect(plainLine).toContain(new URL(plain.url).port);
    const command = ['sh', '-c', script, 'hub-singleuser', '{ip}', '--', 'guarded {port}'];
    await start(spawner, { serverId: 'server-2', command });
    expect(await seen('guarded')).toContain('hub-singleuser 127.0.0.1 -- guarded {port}');
  });

  test('never shares a port with another one that has not begun to listen', async () => {
    const spawner = createSpawner();
    const servers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => start(spawner, { serverId: `server-${index}` })),
    );
    expect(new Set(servers.map(({ url }) => url)).size).toBe(5);
  });

  test('listens on every address when it should, and is reached on the loopback one', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { ip: '0.0.0.0' });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    await seen('listening on http://0.0.0.0:');
    expect(await isReady(server)).toMatchObject({ ready: true });
  });

  test('that ends by itself is known with its exit code', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { command: app('exit-at-once', '4') });
    expect(await server.exited).toEqual({ code: 4, signal: null });
    expect(await spawner.poll(server.state)).toMatchObject({ running: false, exit: { code: 4 } });
    expect(lines).toContain('something is missing');
  });

  test('ends with everything it started, though it ignores SIGTERM', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { command: app('leaves-children', 'stay') });
    const children = Object.values<number>(JSON.parse(await seen('sameGroup')));
    const identities = [pidOf(server), ...children].map((pid) => identifyProcess(pid));
    await stop(spawner, server);
    expect(identities.map((each) => each && isSameProcess(each))).toEqual([false, false, false]);
  });

  test('does not print its tokens into the log', async () => {
    const spawner = createSpawner();
    const environment = { PATH: env['PATH'] ?? '', HUB_API_TOKEN: 'hub_very_secret' };
    await start(spawner, {
      command: ['sh', '-c', 'echo "is $HUB_API_TOKEN"; sleep 60'],
      environment,
    });
    expect(await seen('is ')).toBe('is [secret]');
  });

  test.each([
    ['no-such-command', /cannot be started: command not found in PATH: no-such-command/],
    ['/etc/passwd', /cannot be started: permission denied: \/etc\/passwd/],
  ])('whose command is %s does not start and says why', async (command, message) => {
    await expect(start(createSpawner(), { command: [command] })).rejects.toThrow(message);
  });

  test('whose directory cannot be made does not start and says why', async () => {
    const workingDirectory = '/proc/nowhere/ann';
    await expect(start(createSpawner(), { workingDirectory })).rejects.toThrow(
      'The directory /proc/nowhere/ann of the server cannot be made.',
    );
  });

  test('whose start is given up is ended', async () => {
    const controller = new AbortController();
    const onOutput = (line: string) => {
      lines.push(line);
      controller.abort();
    };
    const command = ['sh', '-c', 'echo pid $$; exec sleep 60'];
    const starting = start(createSpawner(), { command, onOutput, signal: controller.signal });
    await expect(starting).rejects.toThrow('given up');
    expect(identifyProcess(Number(lines[0]?.split(' ')[1]))).toBeUndefined();
  });
});

test('a server whose port another program of its account takes gets another one', async () => {
  const thieves: ReturnType<typeof createServer>[] = [];
  const urls: string[] = [];
  const spawner = createSpawner(30_000);
  try {
    const server = await start(spawner, {
      // Asked for just before the start: the moment a thief would have.
      environmentForUrl: (url) => {
        urls.push(url);
        const { port } = new URL(url);
        if (urls.length === 1) thieves.push(createServer().listen(Number(port), '127.0.0.1'));
        return { HUB_SERVICE_URL: url };
      },
    });
    expect(urls).toHaveLength(2);
    expect(server.url).toBe(urls[1]);
    expect(await isReady(server)).toMatchObject({ ready: true });
  } finally {
    for (const thief of thieves) {
      thief.closeAllConnections();
      thief.close();
    }
  }
});

describe.runIf(runsAsRoot())('a server of a system user', () => {
  test('runs as that user, in a directory of that user', async () => {
    await using programs = await sharePrograms('web-server.ts');
    const command = [
      'sh',
      '-c',
      'echo "$(id -un) $USER $PWD"; touch file; exec "$0" "$1"',
      ...programs.app('web-server.ts'),
    ];
    const server = await start(createSpawner(), { command, systemUser: 'nobody', socket: true });
    const home = join(directory, 'homes', 'ann');
    expect(await seen('nobody')).toBe(`nobody nobody ${home}`);
    expect(await isReady(server)).toMatchObject({ ready: true });
    expect((await stat(home)).uid).toBe(65534);
    expect((await stat(join(home, 'file'))).uid).toBe(65534);
  });

  test('that does not exist does not start', async () => {
    await expect(start(createSpawner(), { systemUser: 'no-such-user' })).rejects.toThrow(
      'there is no system user "no-such-user"',
    );
  });

  test('gets another port when a program of another account listens on its own', async () => {
    await using programs = await sharePrograms('web-server.ts');
    const thieves: ChildProcess[] = [];
    const urls: string[] = [];
    // The first one never listens, so only the account tells that the listener is not the server.
    const listenLater = [
      'sh',
      '-c',
      'if [ -e late ]; then exec "$0" "$1"; fi; touch late; sleep 60',
      ...programs.app('web-server.ts'),
    ];
    const squat = `require('net').createServer().listen(+process.argv[1], '127.0.0.1', () => console.log('up'))`;
    try {
      const spawner = createSpawner(30_000);
      const server = await start(spawner, {
        command: listenLater,
        systemUser: 'nobody',
        environmentForUrl: (url) => {
          urls.push(url);
          if (urls.length === 1) {
            const port = new URL(url).port;
            thieves.push(spawn(programs.node, ['-e', squat, port], { uid: 1, gid: 1 }));
          }
          return { HUB_SERVICE_URL: url };
        },
      });
      expect(urls).toHaveLength(2);
      expect(server.url).toBe(urls[1]);
    } finally {
      for (const thief of thieves) thief.kill('SIGKILL');
    }
  });
});

describe('after a restart of the hub', () => {
  test('a server is found again, heard, measured and stopped by the next one', async () => {
    const former = createSpawner();
    const server = await start(former, { command: app('counts') });
    await seen('counting');
    await former[Symbol.asyncDispose]?.();
    expect(await former.poll(server.state)).toEqual({ running: true });

    const next = createSpawner();
    const state = JSON.parse(JSON.stringify(server.state));
    const found = await next.restore(state, { onOutput: (line) => lines.push(`again: ${line}`) });
    expect(found).toMatchObject({ url: server.url, state });
    kill(pidOf(server), 'SIGUSR1');
    await seen('again: count 1');
    expect(await next.poll(state)).toEqual({ running: true });
    await next.stop(state, { graceMs: 5_000, signal: AbortSignal.timeout(30_000) });
    expect(await found?.exited).toEqual({ code: null, signal: null });
    expect(await next.poll(state)).toEqual({ running: false });
  });

  test('a server on a socket that has ended meanwhile leaves no socket behind', async () => {
    const former = createSpawner();
    const server = await start(former, { socket: true });
    await isReady(server);
    await former[Symbol.asyncDispose]?.();
    kill(pidOf(server), 'SIGKILL');
    const next = createSpawner();
    await expect.poll(() => next.restore(server.state, { onOutput: ignore })).toBeUndefined();
    await stop(next, server);
    const path = decodeURIComponent(server.url.replace('http+unix://', ''));
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  test('another program with the pid of a server is neither found nor stopped', async () => {
    const innocent = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)'], { detached: true });
    try {
      const identity = identifyProcess(innocent.pid ?? 0);
      if (identity === undefined) throw new Error('the other program has not started');
      const state = {
        serverId: 'server-1',
        pid: identity.pid,
        startTime: 'another boot/7',
        url: 'http://127.0.0.1:9',
        logFile: join(directory, 'logs', 'server-1.log'),
      };
      const spawner = createSpawner();
      expect(await spawner.restore(state, { onOutput: ignore })).toBeUndefined();
      expect(await spawner.poll(state)).toEqual({ running: false });
      await spawner.stop(state, { graceMs: 100, signal: AbortSignal.timeout(30_000) });
      expect(isSameProcess(identity)).toBe(true);
    } finally {
      innocent.kill('SIGKILL');
    }
  });

  test('a state that is not one is no server', async () => {
    const spawner = createSpawner();
    expect(await spawner.restore({}, { onOutput: ignore })).toBeUndefined();
    expect(await spawner.poll({ pid: 1 })).toEqual({ running: false });
    await spawner.stop({ pid: -1 }, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
    expect(await spawner.usage?.([{}])).toEqual([undefined]);
  });
});

describe('what a hub left that was killed in a start', () => {
  /** Starts a program of the server, as a hub does that is then killed. */
  async function leaveBehind(hubId = 'hub-1'): Promise<ProcessIdentity> {
    const logFile = join(directory, 'elsewhere', 'server.log');
    const [program = '', ...rest] = app('supervises', logFile, ...app('never-listens'));
    const tag = newTag(tagFamilyOf(hubId, 'server-1'));
    const hub = spawn(program, rest, {
      env: { ...process.env, TAG: tag },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(hub.stdout), 'line');
    hub.kill('SIGKILL');
    const orphan = JSON.parse(String(line)) as ProcessIdentity;
    expect(isSameProcess(orphan)).toBe(true);
    return orphan;
  }

  test('is ended by the next start, also of a hub that started the server before', async () => {
    const spawner = createSpawner();
    await stop(spawner, await start(spawner));
    const orphan = await leaveBehind();
    const server = await start(spawner);
    expect(isSameProcess(orphan)).toBe(false);
    expect(await isReady(server)).toMatchObject({ ready: true });
  });

  test('is ended by the hub that takes its servers over, also when a look comes at the wrong moment', async () => {
    const orphan = await leaveBehind();
    let looks = 0;
    const view: ProcessView = {
      ...directView,
      async tagsOf(family) {
        looks += 1;
        return looks === 1 ? [] : directView.tagsOf(family);
      },
    };
    const spawner = createSpawner(200, { view, cgroups: noCgroups });
    await spawner.discard?.('server-1', { graceMs: 5_000, isOurs: () => true });
    expect(isSameProcess(orphan)).toBe(false);
  });

  test('is left alone by hubs of other databases, and by one that may have lost the server', async () => {
    const orphan = await leaveBehind();
    try {
      await start(createSpawner(200, { hubId: 'hub-2' }));
      const spawner = createSpawner();
      const isOurs = () => false;
      await spawner.discard?.('server-1', { graceMs: 0, isOurs });
      await expect(start(spawner, { isOurs })).rejects.toThrow('another instance of the hub');
      expect(isSameProcess(orphan)).toBe(true);
    } finally {
      kill(orphan.pid, 'SIGKILL');
    }
  });
});

test('a hub that learns late that another one has started its server again ends only its own', async () => {
  const former = await start(createSpawner());
  const heir = createSpawner();
  await stop(heir, former);
  const current = await start(heir);
  await stop(createSpawner(), former);
  expect(await heir.poll(current.state)).toEqual({ running: true });
  expect(await isReady(current)).toMatchObject({ ready: true });
});

test('the plugin checks its options and makes a spawner', async () => {
  const options = localProcessPlugin.optionsSchema.parse({});
  expect(options).toEqual({ memory_check_interval: 2 });
  expect(localProcessPlugin.optionsSchema.safeParse({ typo: 1 }).success).toBe(false);
  const spawner = await localProcessPlugin.create(options, {
    ...testSurroundings,
    log,
    runtimeDirectory: directory,
    hubId: 'hub',
    activeServers: async () => new Set<string>(),
  });
  await spawner[Symbol.asyncDispose]?.();
});
