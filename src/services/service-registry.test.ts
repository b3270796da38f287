import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath, kill, pid as ownPid } from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { nodeCommand } from '../../test/support/node-command.ts';
import { sharePrograms } from '../../test/support/shared-programs.ts';
import type { ServiceConfig } from '../config/config.ts';
import { Secret } from '../config/secret.ts';
import { serviceSchema } from '../config/service-schema.ts';
import { createOrigins } from '../http/origins.ts';
import { type InstanceLease, openInstanceLease } from '../instances/instance-lease.ts';
import { createInstanceStore } from '../instances/instance-store.ts';
import { type Clock, systemClock } from '../processes/clock.ts';
import {
  identifyProcess,
  isSameProcess,
  type ProcessIdentity,
} from '../processes/process-identity.ts';
import { runsAsRoot } from '../processes/system-user.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';
import { createManagedProcessStore } from './managed-process-store.ts';
import { createServiceOwnerStore } from './service-owner-store.ts';
import { createServiceRegistry, type ServiceRegistry } from './service-registry.ts';
import type { ServiceState, ServiceStatus } from './service-status.ts';

const log = pino({ level: 'silent' });
let directory: string;
let database: HubDatabase;
let lease: InstanceLease;
let isLeaseHeld: boolean;
let routes: Map<string, 'open' | 'closed'>;
let tokens: Map<string, string>;
const registries: ServiceRegistry[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'services-'));
  await chmod(directory, 0o755);
  database = await openDatabase('sqlite::memory:', { directory, log });
  lease = await takeLease();
  isLeaseHeld = true;
  routes = new Map();
  tokens = new Map();
});
afterEach(async () => {
  await Promise.all(registries.splice(0).map((registry) => registry[Symbol.asyncDispose]()));
  await database[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/** As each start of a hub does: what the one before had is this one's. */
function takeLease(): Promise<InstanceLease> {
  const id = randomUUID();
  return openInstanceLease({
    store: createInstanceStore(database),
    instance: {
      id,
      name: 'here',
      url: undefined,
      host: 'here',
      machineId: 'here',
      process: { pid: ownPid, startTime: '' },
      version: '1',
      basePath: '/',
      keyDigests: [],
      settingsDigest: '',
    },
    isShared: false,
    announce: () => {},
    log,
  });
}

function config(entry: Record<string, unknown>): ServiceConfig {
  const { api_token, ...rest } = serviceSchema.parse({ stop_timeout: 5, ...entry });
  return typeof api_token === 'string' ? { ...rest, api_token: new Secret(api_token) } : rest;
}

function app(name: string, ...rest: string[]): string[] {
  return [
    ...nodeCommand,
    fileURLToPath(new URL(`../../fixtures/apps/${name}.ts`, import.meta.url)),
    ...rest,
  ];
}

function createRegistry(
  entries: readonly Record<string, unknown>[],
  stableRunMs = 600_000,
  clock: Clock = systemClock,
): ServiceRegistry {
  const registry = createServiceRegistry({
    configs: entries.map(config),
    hubId: 'hub-1',
    directory,
    logDirectory: join(directory, 'logs'),
    prefixes: ['HUB'],
    inherited: { PATH: env['PATH'] },
    apiUrl: 'http://127.0.0.1:8080/hub/api',
    origins: createOrigins({
      publicUrl: new URL('http://127.0.0.1:8000/'),
      basePath: '/',
    }),
    basePath: '/',
    routes: {
      open: ({ name }) => routes.set(name, 'open'),
      close: ({ name }) => routes.set(name, 'closed'),
      remove: ({ name }) => routes.delete(name),
    },
    store: createManagedProcessStore(database, lease.id),
    owners: createServiceOwnerStore(database, lease.id),
    isShared: false,
    lease: { ...lease, isHeld: () => isLeaseHeld },
    database,
    elsewhere: { restart: async () => {}, outputOf: async () => [], endLeft: async () => {} },
    tokens: {
      set: (name, token) => tokens.set(name, token),
      setHash: (name, hash) => tokens.set(name, hash),
      delete: (name) => tokens.delete(name),
    },
    announceChange: () => undefined,
    log,
    random: () => 0,
    limits: { firstDelayMs: 10, longestDelayMs: 50, stableRunMs, crashLoopFailures: 3 },
    usageIntervalMs: 100,
    clock,
  });
  registries.push(registry);
  return registry;
}

async function started(
  entries: readonly Record<string, unknown>[],
  stableRunMs?: number,
): Promise<ServiceRegistry> {
  const registry = createRegistry(entries, stableRunMs);
  await registry.start();
  return registry;
}

async function until(
  registry: ServiceRegistry,
  condition: (status: ServiceStatus) => boolean,
  name = 'a',
): Promise<ServiceStatus> {
  return vi.waitFor(
    () => {
      const status = registry.statusOf(name);
      if (status === undefined || !condition(status)) throw new Error(JSON.stringify(status));
      return status;
    },
    { timeout: 30_000, interval: 10 },
  );
}

const inState = (state: ServiceState) => (status: ServiceStatus) => status.state === state;

async function freeUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

describe('a managed web service', () => {
  test('gets its route when it is ready and loses it when it stops', async () => {
    const url = await freeUrl();
    const registry = createRegistry([{ name: 'a', url, command: app('web-server') }]);
    expect(routes.get('a')).toBe('closed');
    expect(registry.statusOf('a')?.state).toBe('stopped');
    await registry.start();
    const { pid } = await until(registry, inState('ready'));
    expect(routes.get('a')).toBe('open');
    const response = await fetch(`${url}/services/a/`);
    expect(await response.json()).toEqual({ pid, name: 'a', url: '/services/a/' });
    await registry[Symbol.asyncDispose]();
    expect(routes.get('a')).toBe('closed');
    expect(registry.statusOf('a')?.state).toBe('stopped');
    expect(identifyProcess(pid ?? 0)).toBeUndefined();
  });

  test('is restarted whenever it stops, also with exit code 0', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    const before = await until(registry, inState('ready'));
    await fetch(`${url}/exit`, { method: 'POST' });
    const after = await until(
      registry,
      ({ state, restarts }) => state === 'ready' && restarts === 1,
    );
    expect(after.pid).not.toBe(before.pid);
    expect(after.lastExit).toMatchObject({ code: 0, signal: null, leftBehind: 0 });
    expect(after.lastError).toBeUndefined();
    expect(routes.get('a')).toBe('open');
  });

  test('is restarted when something kills it', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    const { pid = 0 } = await until(registry, inState('ready'));
    kill(pid, 'SIGKILL');
    const after = await until(
      registry,
      ({ state, restarts }) => state === 'ready' && restarts === 1,
    );
    expect(after.lastExit?.signal).toBe('SIGKILL');
  });

  test('that dies every few seconds stays crash looping while it answers in between', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    for (let run = 0; run < 3; run += 1) {
      await until(registry, ({ isReady, restarts }) => isReady && restarts === run);
      await fetch(`${url}/exit`, { method: 'POST' });
    }
    const status = await until(registry, ({ isReady, restarts }) => isReady && restarts === 3);
    expect(status.state).toBe('crash_looping');
    expect(routes.get('a')).toBe('open');
  });

  test('that answers with 5xx is not ready, says why, and is left running', async () => {
    const url = await freeUrl();
    const entry = { name: 'a', url, command: app('web-server', 'broken'), timeout: 0.5 };
    const registry = await started([entry]);
    const answersWithError = ({ state, lastError }: ServiceStatus) =>
      state === 'unhealthy' && lastError?.endsWith(`${url} answers with status 500`) === true;
    const broken = await until(registry, answersWithError);
    expect(broken.pid).toBeDefined();
    expect(routes.get('a')).toBe('closed');
    await fetch(`${url}/mend`, { method: 'POST' });
    const mended = await until(registry, inState('ready'));
    expect(mended.pid).toBe(broken.pid);
    expect(routes.get('a')).toBe('open');
  });

  test('that never listens is visible with its reason', async () => {
    const url = await freeUrl();
    const registry = await started([
      { name: 'a', url, command: app('never-listens'), timeout: 0.3 },
    ]);
    const status = await until(registry, inState('unhealthy'));
    expect(status.lastError).toBe(`not ready after 0.3 s: nothing listens on ${url}`);
    expect(routes.get('a')).toBe('closed');
  });

  test.runIf(runsAsRoot())(
    "gets no route while another account's program has its port",
    async () => {
      const script = `require('http').createServer((q, r) => r.end()).listen(0, '127.0.0.1', function () {
      console.log(this.address().port);
    })`;
      await using programs = await sharePrograms();
      const stranger = spawn(programs.node, ['-e', script], { uid: 65534, gid: 65534 });
      try {
        const [port] = await once(createInterface(stranger.stdout), 'line');
        const url = `http://127.0.0.1:${port}`;
        const entry = { name: 'a', url, command: app('never-listens'), timeout: 0.3 };
        const registry = await started([entry]);
        const { lastError } = await until(registry, inState('crash_looping'));
        expect(lastError).toBe(`pid ${stranger.pid} (node) holds the port ${port}`);
        expect(routes.get('a')).toBe('closed');
      } finally {
        stranger.kill('SIGKILL');
      }
    },
  );
});

describe('the port of a managed service', () => {
  async function listen(port = 0) {
    const server = createServer((_request, response) => response.end());
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  test('that another program of its account holds keeps it from starting, until it is free', async () => {
    const stranger = await listen();
    const registry = await started([{ name: 'a', url: stranger.url, command: app('web-server') }]);
    const { lastError, pid } = await until(registry, inState('crash_looping'));
    expect(lastError).toMatch(
      new RegExp(`^pid ${ownPid} \\(.+\\) holds the port ${new URL(stranger.url).port}$`),
    );
    expect(pid).toBeUndefined();
    expect(routes.get('a')).toBe('closed');
    await stranger[Symbol.asyncDispose]();
    await until(registry, ({ isReady }) => isReady);
    expect(routes.get('a')).toBe('open');
  });

  test('that another program takes while it starts is not its own, unless it is to be so', async () => {
    const url = await freeUrl();
    const entry = { name: 'a', url, command: app('never-listens'), timeout: 0.3 };
    const registry = await started([entry]);
    await until(registry, ({ pid }) => pid !== undefined);
    await using _stranger = await listen(Number(new URL(url).port));
    await until(
      registry,
      ({ lastError }) => lastError?.endsWith(`holds the port ${new URL(url).port}`) === true,
    );
    expect(routes.get('a')).toBe('closed');
    await registry.applyConfig([config({ ...entry, listens_elsewhere: true })]);
    await until(registry, inState('ready'));
  });

  test('may be held by whatever the command has started', async () => {
    const url = await freeUrl();
    // One that left its process group, its session and its parent.
    const script = 'setsid sh -c \'"$@" & \' sh "$@"; exec sleep 600';
    const command = ['sh', '-c', script, 'sh', ...app('web-server')];
    const registry = await started([{ name: 'a', url, command }]);
    await until(registry, inState('ready'));
  });
});

describe('a managed service without a url', () => {
  test('counts as ready when it keeps running, and its output is kept', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    await until(registry, inState('ready'));
    const status = await until(registry, ({ outputTail }) => outputTail.length > 0);
    expect(status.outputTail).toEqual(['running without a port']);
    expect(routes.size).toBe(0);
    expect(await readdir(join(directory, 'logs'))).toEqual(['service-a.log']);
  });

  test('is measured', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    const { usage } = await until(
      registry,
      ({ usage }) => usage !== undefined && usage.memoryBytes > 10 * 1024 * 1024,
    );
    expect(usage).toMatchObject({ processes: 1 });
  });

  test('that exits at once ends up crash looping, is never given up, and can be reset', async () => {
    const registry = await started([{ name: 'a', command: app('exit-at-once', '7') }]);
    const status = await until(registry, inState('crash_looping'));
    expect(status.lastExit).toMatchObject({ code: 7 });
    expect(status.lastError).toMatch(/^exited with code 7 after \d+\.\d s$/);
    expect(status.restarts).toBeGreaterThanOrEqual(2);
    await until(registry, ({ restarts }) => restarts > status.restarts + 2);
    expect(await registry.restart('a')).toBe(true);
    await until(registry, ({ state }) => state !== 'crash_looping');
    expect(await registry.restart('nobody')).toBe(false);
  });

  test('is crash looping until a run has lasted', async () => {
    const file = join(directory, 'mended');
    const command = ['sh', '-c', `[ -e ${file} ] || exit 7; exec sleep 600`];
    const registry = await started([{ name: 'a', command }], 3_000);
    await until(registry, inState('crash_looping'));
    await writeFile(file, '');
    const ready = await until(registry, ({ isReady }) => isReady);
    expect(ready.state).toBe('crash_looping');
    await until(registry, inState('ready'));
  });

  test.each([
    [
      'whose command does not exist',
      ['no-such-command'],
      'command not found in PATH: no-such-command',
    ],
    [
      'whose command may not be executed',
      ['/etc/passwd'],
      'permission denied: /etc/passwd is not executable',
    ],
  ])('%s says so and is tried again', async (_what, command, reason) => {
    const registry = await started([{ name: 'a', command }]);
    const status = await until(registry, inState('crash_looping'));
    expect(status.lastError).toBe(reason);
    await until(registry, ({ restarts }) => restarts > status.restarts);
  });

  test('is not started again while the instance has lost its lease', async () => {
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        if (ms === 250) waits += 1;
        await systemClock.sleep(ms, signal);
      },
    };
    const registry = createRegistry([{ name: 'a', command: ['sleep', '600'] }], 600_000, clock);
    await registry.start();
    const { pid = 0 } = await until(registry, inState('ready'));
    isLeaseHeld = false;
    kill(pid, 'SIGKILL');
    await vi.waitFor(() => expect(waits).toBeGreaterThan(1), { timeout: 30_000 });
    expect(registry.statusOf('a')?.pid).toBeUndefined();
    isLeaseHeld = true;
    await until(registry, inState('ready'));
  });

  test('whose user has gone says so', async () => {
    const registry = await started([{ name: 'a', command: ['true'], user: 'no-such-user' }]);
    const status = await until(registry, ({ lastError }) => lastError !== undefined);
    expect(status.lastError).toBe('there is no user "no-such-user" on this machine');
  });

  test('that goes to the background is ended with all it left, and told to stay', async () => {
    const registry = await started([{ name: 'a', command: app('leaves-children') }]);
    const status = await until(registry, ({ lastExit }) => lastExit !== undefined);
    expect(status.lastExit).toMatchObject({ code: 0, leftBehind: 2 });
    expect(status.lastError).toContain('a service must stay in the foreground');
  });

  test('cannot be started while a daemon of an earlier run lives on: the daemon is ended', async () => {
    const registry = await started([{ name: 'a', command: ['no-such-program'] }]);
    await until(registry, inState('crash_looping'));
    const daemon = spawn('sleep', ['600'], {
      env: {
        PATH: env['PATH'],
        HUB_PROCESS_TAG: `${join(directory, 'logs', 'service-a.log')}#hub-1#${lease.id}`,
      },
    });
    const [, signal] = await once(daemon, 'exit');
    expect(signal).toBe('SIGTERM');
  });

  test('that ignores SIGTERM does not hold up the end of the hub', async () => {
    const entry = { name: 'a', command: app('ignores-sigterm'), stop_timeout: 0.2 };
    const registry = await started([entry]);
    const { pid = 0 } = await until(registry, ({ outputTail }) => outputTail.length > 0);
    await registry[Symbol.asyncDispose]();
    expect(identifyProcess(pid)).toBeUndefined();
    expect(registry.statusOf('a')?.lastExit?.signal).toBe('SIGKILL');
  });

  test.runIf(runsAsRoot())('runs as its user, in its directory, with its environment', async () => {
    const command = ['sh', '-c', 'echo $(id -un) $PWD $GREETING $HUB_SERVICE_NAME $USER; sleep 60'];
    const entry = { name: 'a', command, user: 'nobody', cwd: '/', environment: { GREETING: 'hi' } };
    const registry = await started([entry]);
    const status = await until(registry, ({ outputTail }) => outputTail.length > 0);
    expect(status.outputTail).toEqual(['nobody / hi a nobody']);
  });

  test('gets a token that is in no file, not even when it prints it', async () => {
    const command = ['sh', '-c', 'echo token=$HUB_API_TOKEN; sleep 60'];
    const registry = await started([{ name: 'a', command }]);
    const status = await until(registry, ({ outputTail }) => outputTail.length > 0);
    expect(tokens.get('a')).toMatch(/^hub_/);
    expect(registry.find('a')?.apiToken?.reveal()).toBe(tokens.get('a'));
    expect(status.outputTail).toEqual(['token=[secret]']);
  });
});

describe('an external service', () => {
  test('gets its route while it answers', async () => {
    const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const registry = await started([{ name: 'a', url, api_token: 'long-enough' }]);
    await until(registry, inState('ready'));
    expect(routes.get('a')).toBe('open');
    expect(tokens.get('a')).toBe('long-enough');
    server.closeAllConnections();
    await once(server.close(), 'close');
    await registry.restart('a');
    const status = await until(registry, inState('unhealthy'));
    expect(status.lastError).toBe(`nothing listens on ${url}`);
    expect(routes.get('a')).toBe('closed');
  });

  test('without a url only holds its token', async () => {
    const registry = await started([{ name: 'a', api_token: 'long-enough' }]);
    expect(registry.statusOf('a')).toMatchObject({ kind: 'external', isReady: true });
    expect(routes.size).toBe(0);
  });
});

describe('a reload', () => {
  test('restarts what changed, adds, removes, and leaves the rest alone', async () => {
    const command = app('never-listens');
    const urls = [await freeUrl(), await freeUrl()];
    const registry = await started([
      { name: 'same', command },
      { name: 'changed', command },
      { name: 'shown', command },
      { name: 'gone', command, url: urls[0] },
    ]);
    const running = ({ pid }: ServiceStatus) => pid !== undefined;
    const [same, changed, shown, gone] = await Promise.all(
      ['same', 'changed', 'shown', 'gone'].map((name) => until(registry, running, name)),
    );
    const token = tokens.get('same');
    const goneIdentity = identifyProcess(gone?.pid ?? 0);
    const difference = await registry.applyConfig(
      [
        { name: 'same', command },
        { name: 'changed', command, environment: { A: 'b' } },
        { name: 'shown', command, display: false },
        { name: 'new', command, url: urls[1] },
      ].map(config),
    );
    expect(difference).toEqual({
      added: ['new'],
      removed: ['gone'],
      restarted: ['changed'],
      updated: ['shown'],
    });
    await until(registry, running, 'new');
    const restarted = await until(registry, running, 'changed');
    expect(registry.statusOf('same')?.pid).toBe(same?.pid);
    expect(registry.statusOf('shown')?.pid).toBe(shown?.pid);
    expect(registry.find('shown')?.isDisplayed).toBe(false);
    expect(restarted.pid).not.toBe(changed?.pid);
    expect(goneIdentity && isSameProcess(goneIdentity)).toBe(false);
    expect(registry.statusOf('gone')).toBeUndefined();
    expect([...routes]).toEqual([['new', 'closed']]);
    expect([...tokens.keys()].sort()).toEqual(['changed', 'new', 'same', 'shown']);
    expect(tokens.get('same')).toBe(token);
  });

  test('two reloads at once end with the second', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    const b = [config({ name: 'b', command: app('never-listens') })];
    const c = [config({ name: 'c', command: app('never-listens') })];
    await Promise.all([registry.applyConfig(b), registry.applyConfig(c)]);
    expect(registry.services().map(({ name }) => name)).toEqual(['c']);
  });
});

describe('what a killed hub left running', () => {
  /** Starts the program of a service under a hub that is killed; tells the process. */
  async function orphan(name: string, hubId: string, command: readonly string[]) {
    const file = join(directory, 'logs', `service-${name}.log`);
    const [program = '', ...rest] = app('supervises', file, ...command);
    const hub = spawn(program, rest, {
      env: { ...env, TAG: `${file}#${hubId}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(hub.stdout), 'line');
    hub.kill('SIGKILL');
    await once(hub, 'exit');
    return { file, identity: JSON.parse(String(line)) as ProcessIdentity };
  }

  test('is ended by the next start, also a service that is no longer configured', async () => {
    const store = createManagedProcessStore(database, lease.id);
    const orphans = await Promise.all(
      ['a', 'former'].map(async (name) => {
        const { file, identity } = await orphan(name, 'hub-1', app('leaves-children', 'stay'));
        await store.remember(name, identity, new Date());
        const children = await vi.waitFor(
          async () =>
            JSON.parse(await readFile(file, 'utf8')) as { sameGroup: number; daemon: number },
          { timeout: 30_000, interval: 20 },
        );
        return [identity, identifyProcess(children.sameGroup), identifyProcess(children.daemon)];
      }),
    );
    expect(orphans.flat().map((each) => each && isSameProcess(each))).toEqual(Array(6).fill(true));
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    expect(orphans.flat().map((each) => each && isSameProcess(each))).toEqual(Array(6).fill(false));
    const { pid } = await until(registry, inState('ready'));
    await expect.poll(() => store.list()).toMatchObject([{ serviceName: 'a', identity: { pid } }]);
  });

  test('is not looked for where none has run before', async () => {
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        waits += 1;
        await systemClock.sleep(ms, signal);
      },
    };
    const registry = createRegistry([{ name: 'a', command: app('never-listens') }], 600_000, clock);
    await registry.start();
    expect(waits).toBe(0);
  });

  test('is left alone when it is of another hub with a service of the same name', async () => {
    const { identity } = await orphan('a', 'hub-2', app('never-listens'));
    try {
      await started([{ name: 'a', command: app('never-listens') }]);
      expect(isSameProcess(identity)).toBe(true);
    } finally {
      kill(identity.pid, 'SIGKILL');
    }
  });

  test('is not waited for when the start is ended, and stays known to the next one', async () => {
    const store = createManagedProcessStore(database, lease.id);
    const { identity } = await orphan('a', 'hub-1', app('ignores-sigterm'));
    await store.remember('a', identity, new Date());
    const registry = createRegistry([{ name: 'a', command: app('never-listens') }]);
    const ending = new AbortController();
    const starting = registry.start(ending.signal);
    ending.abort();
    await starting;
    expect(registry.statusOf('a')).toMatchObject({ pid: undefined, isReady: false });
    expect(await store.list()).toMatchObject([{ serviceName: 'a', identity }]);
    await started([{ name: 'a', command: app('never-listens') }]);
    expect(isSameProcess(identity)).toBe(false);
  });

  test('is left alone when its pid belongs to another program now', async () => {
    const store = createManagedProcessStore(database, lease.id);
    const innocent = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)'], { detached: true });
    try {
      const identity = identifyProcess(innocent.pid ?? 0);
      if (identity === undefined) throw new Error('the other program has not started');
      await store.remember('former', { ...identity, startTime: 'another boot/1' }, new Date());
      await started([]);
      expect(isSameProcess(identity)).toBe(true);
      expect(await store.list()).toEqual([]);
    } finally {
      innocent.kill('SIGKILL');
    }
  });
});

test('a hub with nothing but broken services starts at once', async () => {
  const registry = await started([
    { name: 'a', command: 'no-such-command' },
    { name: 'b', command: app('exit-at-once') },
    { name: 'c', url: await freeUrl(), command: app('never-listens'), timeout: 600 },
    { name: 'd', url: await freeUrl() },
  ]);
  expect(registry.statuses().map(({ isReady }) => isReady)).toEqual([false, false, false, false]);
});
