import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  SpawnedServer,
  Spawner,
  SpawnerHost,
  SpawnerPlugin,
  SpawnRequest,
} from '../../src/plugin.ts';
import { shapeProblem } from '../../src/plugin-host/plugin-shape.ts';
import { waitUntilReady } from '../../src/processes/readiness-probe.ts';
import { testSurroundings } from './test-host.ts';

/** What the suite must know of the spawner under test. */
export interface SpawnerContract {
  readonly plugin: SpawnerPlugin;
  /** Options as they would stand in the configuration, secrets as text. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly commands: {
    /** A web server on HUB_SERVICE_URL that prints a line `listening …` when it does. */
    readonly serves: readonly string[];
    /** A program that ends by itself with the exit code 3. */
    readonly exits: readonly string[];
    /** A program that does not end on SIGTERM; prints a line with `ignoring` once it does that. */
    readonly stubborn: readonly string[];
    /** A program that cannot be started at all. */
    readonly missing: readonly string[];
  };
  /** Whether it starts servers on Unix sockets too. */
  readonly sockets?: boolean;
}

/** Where the tests of one spawner happen. */
interface Bench {
  create(): Promise<Spawner>;
  request(changed?: Partial<SpawnRequest>): SpawnRequest;
  start(spawner: Spawner, changed?: Partial<SpawnRequest>): Promise<SpawnedServer>;
  stop(spawner: Spawner, server: SpawnedServer): Promise<void>;
  /** Resolves when a line of output holds the text. */
  seen(text: string): Promise<string>;
  readonly logged: string[];
}

const secret = 'hub_a-token-that-no-log-may-hold';

/**
 * Tests what the hub relies on in every spawner. Run it on your own plugin:
 *
 *     describeSpawner('my-cluster', { plugin, options: {}, commands: { … } });
 *
 * Servers are started for real and reached over HTTP from the machine the tests run on.
 */
export function describeSpawner(name: string, contract: SpawnerContract): void {
  describe(`${name} keeps the contract of spawners`, () => {
    const bench = createBench(contract);

    test('it is a plugin of the right shape', () => {
      expect(shapeProblem(contract.plugin)).toBeUndefined();
      expect(contract.plugin.kind).toBe('spawner');
    });

    describeStart(contract, bench);
    describeEnd(contract, bench);
    describeRestart(bench);
  });
}

function createBench({ plugin, options, commands }: SpawnerContract): Bench {
  let directory = '';
  let spawners: Spawner[] = [];
  let started: { spawner: Spawner; server: SpawnedServer }[] = [];
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const logged: string[] = [];
  const record = (fields: object, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log: SpawnerHost['log'] = { debug: record, info: record, warn: record, error: record };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spawner-contract-'));
    spawners = [];
    started = [];
    lines.length = 0;
    logged.length = 0;
  });
  afterEach(async () => {
    await Promise.all(started.map(({ spawner, server }) => bench.stop(spawner, server)));
    await Promise.all(spawners.map((each) => each[Symbol.asyncDispose]?.()));
    await rm(directory, { recursive: true, force: true });
  });

  function onOutput(line: string): void {
    lines.push(line);
    for (const wake of waiting) wake();
  }

  const bench: Bench = {
    logged,

    async create() {
      const host = { ...testSurroundings, log, runtimeDirectory: join(directory, 'run') };
      const spawner = await plugin.create(plugin.optionsSchema.parse(options), host);
      spawners.push(spawner);
      return spawner;
    },

    request: (changed = {}) => ({
      serverId: 'contract-1',
      userName: 'ann',
      serverName: '',
      command: commands.serves,
      environment: { PATH: process.env['PATH'] ?? '', HUB_API_TOKEN: secret },
      workingDirectory: join(directory, 'homes', 'ann'),
      ip: '127.0.0.1',
      socket: false,
      userOptions: {},
      signal: new AbortController().signal,
      stopGraceMs: 5_000,
      environmentForUrl: (url) => ({ HUB_SERVICE_URL: url }),
      onOutput,
      onProgress: () => undefined,
      ...changed,
    }),

    async start(spawner, changed) {
      const server = await spawner.start(bench.request(changed));
      started.push({ spawner, server });
      return server;
    },

    stop: (spawner, { state }) =>
      spawner.stop(state, { graceMs: 5_000, signal: AbortSignal.timeout(30_000) }),

    async seen(text) {
      for (;;) {
        const line = lines.find((each) => each.includes(text));
        if (line !== undefined) return line;
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
        waiting.delete(resolve);
      }
    },
  };
  return bench;
}

const isReady = ({ url }: SpawnedServer) => waitUntilReady({ url, path: '/', timeoutMs: 30_000 });

function describeStart({ commands, sockets }: SpawnerContract, bench: Bench): void {
  describe('a start', () => {
    test.each(sockets === true ? [false, true] : [false])(
      'gives an address at which the server answers (socket: %s)',
      async (socket) => {
        const spawner = await bench.create();
        const server = await bench.start(spawner, { socket });
        expect(server.url).toMatch(socket ? /^http\+unix:\/\/%2F/ : /^https?:\/\/[^/]+:\d+$/);
        expect(await isReady(server)).toMatchObject({ ready: true });
        expect(await spawner.poll(server.state)).toEqual({ running: true });
        await bench.seen('listening');
      },
    );

    test('gives servers that run together addresses of their own', async () => {
      const spawner = await bench.create();
      const ids = ['contract-1', 'contract-2', 'contract-3'];
      const servers = await Promise.all(ids.map((serverId) => bench.start(spawner, { serverId })));
      expect(new Set(servers.map(({ url }) => url)).size).toBe(3);
      for (const server of servers) expect(await isReady(server)).toMatchObject({ ready: true });
    });

    test('has a state that is JSON and holds no secret, and tells no log of one', async () => {
      const spawner = await bench.create();
      const { state } = await bench.start(spawner);
      const text = JSON.stringify(state);
      expect(JSON.parse(text)).toEqual(state);
      expect(text).not.toContain(secret);
      expect(bench.logged.join('\n')).not.toContain(secret);
    });

    test('takes options that no form declares, of any JSON', async () => {
      const spawner = await bench.create();
      const userOptions = {
        repo: { url: 'https://git.example/r', refs: ['a', null, 1] },
        gpu: true,
      };
      const server = await bench.start(spawner, { userOptions });
      expect(await isReady(server)).toMatchObject({ ready: true });
    });

    test('of what cannot be started fails with a reason, and leaves nothing', async () => {
      const spawner = await bench.create();
      const message = await bench
        .start(spawner, { command: commands.missing })
        .then(() => 'it started', String);
      expect(message).not.toBe('it started');
      expect(message).not.toContain(secret);
      // The same server can be started right away.
      expect(await isReady(await bench.start(spawner))).toMatchObject({ ready: true });
    });

    test('that is given up before it began starts nothing', async () => {
      const spawner = await bench.create();
      await expect(bench.start(spawner, { signal: AbortSignal.abort() })).rejects.toThrow();
      await spawner.discard?.('contract-1', { graceMs: 100 });
    });
  });
}

function describeEnd({ commands }: SpawnerContract, bench: Bench): void {
  describe('an end', () => {
    test('on demand is complete when it is told, and may be demanded again', async () => {
      const spawner = await bench.create();
      const server = await bench.start(spawner);
      await isReady(server);
      await bench.stop(spawner, server);
      expect(await spawner.poll(server.state)).toMatchObject({ running: false });
      expect((await isUnreachable(server)).ready).toBe(false);
      await server.exited;
      await bench.stop(spawner, server);
    });

    test('comes also to a server that does not listen to SIGTERM', async () => {
      const spawner = await bench.create();
      const server = await bench.start(spawner, { command: commands.stubborn });
      await bench.seen('ignoring');
      const signal = AbortSignal.timeout(30_000);
      await spawner.stop(server.state, { graceMs: 100, signal });
      expect(await spawner.poll(server.state)).toMatchObject({ running: false });
    });

    test('by itself is noticed, with the last lines', async () => {
      const spawner = await bench.create();
      // One that ends so early may also fail its start: then that is how it is noticed.
      const server = await bench.start(spawner, { command: commands.exits }).catch(() => undefined);
      if (server === undefined) return;
      if (server.exited !== undefined) expect(await server.exited).toMatchObject({ code: 3 });
      expect(await spawner.poll(server.state)).toMatchObject({ running: false });
      await bench.stop(spawner, server);
    });

    test('of one server leaves the others alone', async () => {
      const spawner = await bench.create();
      const [one, other] = await Promise.all(
        ['contract-1', 'contract-2'].map((serverId) => bench.start(spawner, { serverId })),
      );
      if (one === undefined || other === undefined) throw new Error('they did not start');
      await bench.stop(spawner, one);
      expect(await isReady(other)).toMatchObject({ ready: true });
    });
  });
}

function describeRestart(bench: Bench): void {
  describe('the next hub', () => {
    test('finds a server again by its state, and can stop it', async () => {
      const former = await bench.create();
      const server = await bench.start(former);
      await isReady(server);
      await former[Symbol.asyncDispose]?.();

      const next = await bench.create();
      const state = JSON.parse(JSON.stringify(server.state));
      const found = await next.restore(state, { onOutput: () => undefined });
      expect(found?.url).toBe(server.url);
      expect(await isReady(server)).toMatchObject({ ready: true });
      expect(await next.poll(state)).toEqual({ running: true });
      await next.stop(state, { graceMs: 5_000, signal: AbortSignal.timeout(30_000) });
      expect(await next.poll(state)).toMatchObject({ running: false });
      await found?.exited;
    });

    test('does not find what has ended meanwhile', async () => {
      const former = await bench.create();
      const server = await bench.start(former);
      await bench.stop(former, server);
      const next = await bench.create();
      expect(await next.restore(server.state, { onOutput: () => undefined })).toBeUndefined();
    });

    test('makes nothing of a state that is not one', async () => {
      const spawner = await bench.create();
      for (const state of [{}, { pid: 1 }, { serverId: 'contract-1' }, { url: 7 }]) {
        expect(await spawner.restore(state, { onOutput: () => undefined })).toBeUndefined();
        expect(await spawner.poll(state)).toMatchObject({ running: false });
        await spawner.stop(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
      }
    });

    test('ends what a killed hub could not write down', async () => {
      const former = await bench.create();
      const server = await bench.start(former);
      await isReady(server);
      const next = await bench.create();
      await next.discard?.('contract-1', { graceMs: 5_000 });
      await next.discard?.('contract-1', { graceMs: 5_000 });
      if (next.discard === undefined) return;
      expect(await next.poll(server.state)).toMatchObject({ running: false });
    });
  });
}

function isUnreachable({ url }: SpawnedServer) {
  return waitUntilReady({ url, path: '/', timeoutMs: 1 });
}
