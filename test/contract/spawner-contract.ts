import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { trySpawner } from '../../src/plugin/host/create-plugins.ts';
import { shapeProblem } from '../../src/plugin/host/plugin-shape.ts';
import type {
  AcceptAddress,
  ReportedAddress,
  SpawnedServer,
  Spawner,
  SpawnerHost,
  SpawnerPlugin,
  SpawnerState,
  SpawnRequest,
} from '../../src/plugin/plugin.ts';
import { waitUntilReady } from '../../src/spawning/processes/readiness-probe.ts';
import type { ContractTest } from './contract-test.ts';
import { createSpawnRequest } from './spawn-request.ts';
import { testSurroundings } from './test-host.ts';

/** What the suite must know of the spawner under test. */
export interface SpawnerContract {
  readonly plugin: SpawnerPlugin;
  /** Options as they would stand in the configuration, secrets as text. */
  readonly options: Readonly<Record<string, unknown>>;
  /** `options` of the profile with which servers are started; none unless given. */
  readonly profileOptions?: Readonly<Record<string, unknown>>;
  /** Commands that do what the tests need; small programs for the Node.js of the tests by default. */
  readonly commands?: Partial<SpawnerCommands>;
  /** Whether it starts servers on Unix sockets too. */
  readonly sockets?: boolean;
  /** Takes the engine away and brings it back, while its servers go on. Left out where there is none to go away. */
  readonly engine?: SpawnerEngine;
}

export interface SpawnerEngine {
  /** From then on the engine does not answer. */
  takeAway(): Promise<void>;
  bringBack(): Promise<void>;
}

export interface SpawnerCommands {
  /** A web server on HUB_SERVICE_URL that prints a line `listening …` when it does. */
  readonly serves: readonly string[];
  /** A program that ends by itself with the exit code 3. */
  readonly exits: readonly string[];
  /** A program that does not end on SIGTERM; prints a line with `ignoring` once it does that. */
  readonly stubborn: readonly string[];
  /** A program that cannot be started at all. */
  readonly missing: readonly string[];
}

const webServer = `
const url = new URL(process.env.HUB_SERVICE_URL);
const server = require('node:http').createServer((request, response) => response.end('served'));
const at = url.protocol === 'http:' ? [url.port, url.hostname] : [decodeURIComponent(url.host)];
server.listen(...at, () => console.log('listening on ' + url));
`;
const stubborn = `
process.on('SIGTERM', () => console.log('SIGTERM ignored'));
console.log('ignoring SIGTERM');
setInterval(() => {}, 60000);
`;

const defaultCommands: SpawnerCommands = {
  serves: [process.execPath, '-e', webServer],
  exits: [process.execPath, '-e', 'process.exit(3)'],
  stubborn: [process.execPath, '-e', stubborn],
  missing: ['no-such-program'],
};

/**
 * What the hub relies on in every spawner, as tests for any runner:
 *
 *     for (const { name, run } of spawnerContract({ plugin, options: {} })) test(name, run);
 *
 * Servers are started for real and reached over HTTP from the machine the tests run on.
 */
export function spawnerContract(contract: SpawnerContract): readonly ContractTest[] {
  const commands = { ...defaultCommands, ...contract.commands };
  const tests = [
    ...pluginTests(contract),
    ...startTests(contract, commands),
    ...endTests(commands),
    ...restartTests(),
    ...resumeTests(),
    ...deleteTests(),
    ...(contract.engine === undefined ? [] : engineTests(contract.engine)),
  ];
  return tests.map(({ name, run }) => ({
    name,
    async run() {
      await using bench = await createBench(contract, commands);
      await run(bench);
    },
  }));
}

interface BenchTest {
  readonly name: string;
  run(bench: Bench): Promise<void>;
}

/** Where one test of a spawner happens; what it started ends with it. */
interface Bench extends AsyncDisposable {
  create(): Promise<Spawner>;
  request(changed?: Partial<SpawnRequest>): SpawnRequest;
  start(spawner: Spawner, changed?: Partial<SpawnRequest>): Promise<SpawnedServer>;
  stop(spawner: Spawner, server: SpawnedServer): Promise<void>;
  /** Notes a server that another way than `start` led to, so that it ends with the bench. */
  adopt(spawner: Spawner, server: SpawnedServer): void;
  /** The hub is restarted: what the spawner under test stored comes back from JSON. */
  restart(spawner: Spawner): Promise<Spawner>;
  /** Resolves when a line of output holds the text. */
  seen(text: string): Promise<string>;
  readonly logged: string[];
}

const secret = 'hub_a-token-that-no-log-may-hold';
const outputTimeoutMs = 30_000;

/** `options` of the profile that the tests start, as the plugin parses them. */
function profileOptionsOf({ plugin, profileOptions = {} }: SpawnerContract): unknown {
  return plugin.profileOptionsSchema?.parse(profileOptions) ?? {};
}

async function createBench(contract: SpawnerContract, commands: SpawnerCommands): Promise<Bench> {
  const { plugin, options } = contract;
  const directory = await mkdtemp(join(tmpdir(), 'spawner-contract-'));
  const spawners: Spawner[] = [];
  const started: { spawner: Spawner; server: SpawnedServer }[] = [];
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const logged: string[] = [];
  const record = (fields: object, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log: SpawnerHost['log'] = { debug: record, info: record, warn: record, error: record };

  function onOutput(line: string): void {
    lines.push(line);
    for (const wake of waiting) wake();
  }

  const reports = await listenForAddresses();

  const bench: Bench = {
    logged,

    async create() {
      const host = {
        ...testSurroundings,
        log,
        runtimeDirectory: join(directory, 'run'),
        hubId: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
        activeServers: async (ids: readonly string[]) => new Set(ids),
      };
      const spawner = await plugin.create(plugin.optionsSchema.parse(options), host);
      spawners.push(spawner);
      await spawner.open?.();
      return spawner;
    },

    request: (changed = {}) =>
      createSpawnRequest({
        serverId: 'contract-1',
        objectName: changed.serverId ?? 'contract-1',
        command: commands.serves,
        environment: {
          PATH: process.env['PATH'] ?? '',
          HUB_API_TOKEN: secret,
          HUB_ADDRESS_URL: reports.urlFor(changed.serverId ?? 'contract-1'),
        },
        awaitAddress: (accept) => reports.await(changed.serverId ?? 'contract-1', accept),
        workingDirectory: join(directory, 'homes', 'ann'),
        profileOptions: profileOptionsOf(contract),
        authStates: { work: { access_token: secret } },
        onOutput,
        ...changed,
      }),

    async start(spawner, changed) {
      const server = await spawner.start(bench.request(changed));
      bench.adopt(spawner, server);
      return server;
    },

    adopt(spawner, server) {
      started.push({ spawner, server });
    },

    async restart(spawner) {
      await spawner[Symbol.asyncDispose]?.();
      return await bench.create();
    },

    stop: (spawner, { state }) =>
      spawner.stop(state, { graceMs: 1_000, signal: AbortSignal.timeout(30_000) }),

    async seen(text) {
      const timeout = AbortSignal.timeout(outputTimeoutMs);
      for (;;) {
        const line = lines.find((each) => each.includes(text));
        if (line !== undefined) return line;
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        timeout.addEventListener('abort', () => resolve());
        await promise;
        waiting.delete(resolve);
        if (timeout.aborted) assert.fail(`no line of output holds "${text}": ${lines.join('\n')}`);
      }
    },

    async [Symbol.asyncDispose]() {
      await Promise.all(started.map(({ spawner, server }) => bench.stop(spawner, server)));
      await Promise.all(spawners.map((each) => each[Symbol.asyncDispose]?.()));
      await reports[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return bench;
}

interface AddressReports extends AsyncDisposable {
  /** Where the server of that id tells its address. */
  urlFor(serverId: string): string;
  await(serverId: string, accept: AcceptAddress): Promise<string>;
}

/** Takes what servers report of their address, as the API of a hub does. */
async function listenForAddresses(): Promise<AddressReports> {
  const waiting = new Map<string, (report: ReportedAddress) => Promise<void>>();
  const server = createServer((request, response) => {
    const answer = async () => {
      const serverId = request.url?.slice(1) ?? '';
      const { host, port } = (await json(request)) as { host?: string; port: number };
      const isRight = request.headers.authorization === `token ${secret}`;
      const take = isRight ? waiting.get(serverId) : undefined;
      if (take === undefined) throw new Error('There is no such server, or the token is wrong.');
      await take({ host, port });
    };
    answer().then(
      () => response.writeHead(204).end(),
      (error: Error) => response.writeHead(400).end(error.message),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlFor: (serverId) => `http://127.0.0.1:${port}/${serverId}`,
    await: (serverId, accept) =>
      new Promise((resolve) => {
        waiting.set(serverId, async (report) => resolve(await accept(report)));
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A state as the hub has it back from its database. */
function stored(state: SpawnerState): SpawnerState {
  return JSON.parse(JSON.stringify(state)) as SpawnerState;
}

async function assertReady({ url }: SpawnedServer): Promise<void> {
  const probe = await waitUntilReady({ url, path: '/', timeoutMs: 30_000 });
  assert.ok(probe.ready, probe.ready ? '' : String(probe.reason));
}

async function assertRuns(spawner: Spawner, { state }: Pick<SpawnedServer, 'state'>) {
  assert.deepEqual(await spawner.poll(state), { running: true });
}

async function assertEnded(spawner: Spawner, { state }: Pick<SpawnedServer, 'state'>) {
  assert.equal((await spawner.poll(state)).running, false);
}

/** For engines that tell of an end only when they are asked. */
async function untilEnded(spawner: Spawner, { state }: SpawnedServer): Promise<void> {
  const timeout = AbortSignal.timeout(outputTimeoutMs);
  while ((await spawner.poll(state)).running !== false) {
    timeout.throwIfAborted();
    await setTimeout(100);
  }
}

function pluginTests({ plugin, options }: SpawnerContract): BenchTest[] {
  return [
    {
      name: 'it is a plugin of the right shape',
      async run() {
        assert.equal(shapeProblem(plugin), undefined);
        assert.equal(plugin.kind, 'spawner');
      },
    },
    {
      name: 'it finds no problem in options that are right, and refuses a key it does not know',
      async run() {
        const parsed = plugin.optionsSchema.parse(options);
        assert.deepEqual(plugin.findProblems?.(parsed, testSurroundings) ?? [], []);
        const misspelt = plugin.optionsSchema.safeParse({ ...options, no_such_option: true });
        assert.ok(!misspelt.success);
      },
    },
    {
      name: 'it can be created for trial, as hub check does it',
      async run() {
        const parsed = plugin.optionsSchema.parse(options);
        const profileOptions = new Map();
        const { name } = plugin;
        const prepared = { name, plugin, file: name, options: parsed, profileOptions };
        const surroundings = testSurroundings;
        assert.equal(await trySpawner({ ...prepared, surroundings }), undefined);
      },
    },
  ];
}

function startTests({ sockets }: SpawnerContract, commands: SpawnerCommands): BenchTest[] {
  const addresses = [
    { what: 'a port', socket: false, pattern: /^https?:\/\/[^/]+:\d+$/ },
    { what: 'a socket', socket: true, pattern: /^http\+unix:\/\/%2F/ },
  ];
  return [
    ...addresses
      .filter(({ socket }) => !socket || sockets === true)
      .map(({ what, socket, pattern }) => ({
        name: `a start gives ${what} at which the server answers`,
        async run(bench: Bench) {
          const spawner = await bench.create();
          const server = await bench.start(spawner, { socket });
          assert.match(server.url, pattern);
          await assertReady(server);
          await assertRuns(spawner, server);
          await bench.seen('listening');
        },
      })),
    {
      name: 'a start gives servers that run together addresses of their own',
      async run(bench) {
        const spawner = await bench.create();
        const ids = ['contract-1', 'contract-2', 'contract-3'];
        const starts = ids.map((serverId) => bench.start(spawner, { serverId }));
        const servers = await Promise.all(starts);
        assert.equal(new Set(servers.map(({ url }) => url)).size, 3);
        for (const server of servers) await assertReady(server);
      },
    },
    {
      name: 'a start has a state that is JSON and holds no secret, and tells no log of one',
      async run(bench) {
        const spawner = await bench.create();
        const { state } = await bench.start(spawner);
        const text = JSON.stringify(state);
        assert.deepEqual(JSON.parse(text), state);
        assert.ok(!text.includes(secret), 'the state holds a secret');
        assert.ok(!bench.logged.join('\n').includes(secret), 'the log holds a secret');
      },
    },
    {
      name: 'a start of what cannot be started fails with a reason, and leaves nothing',
      async run(bench) {
        const spawner = await bench.create();
        await assert.rejects(
          bench.start(spawner, { command: commands.missing }),
          (error) =>
            error instanceof Error && error.message !== '' && !error.message.includes(secret),
        );
        // The same server can be started right away.
        await assertReady(await bench.start(spawner));
      },
    },
    {
      name: 'a start leads no visitor to a machine that the server names',
      async run(bench) {
        const spawner = await bench.create();
        const server = await bench.start(spawner, {
          // Whoever has the token of the server can tell any address.
          awaitAddress: (accept) =>
            bench.request().awaitAddress(async ({ port }) => {
              const url = await remote(accept, port);
              return url ?? (await accept({ host: undefined, port }));
            }),
        });
        assert.notEqual(new URL(server.url).hostname, foreignHost, 'it believes the server');
        await assertReady(server);
      },
    },
    {
      name: 'a start that is given up before it began starts nothing',
      async run(bench) {
        const spawner = await bench.create();
        await assert.rejects(bench.start(spawner, { signal: AbortSignal.abort() }));
        await spawner.discard?.('contract-1', { graceMs: 100, isOurs: () => true });
      },
    },
  ];
}

/** An address that no machine has (RFC 5737 §3). */
const foreignHost = '192.0.2.1';

/** What a spawner makes of a host on which its engine runs nothing; undefined when it refuses. */
async function remote(accept: AcceptAddress, port: number): Promise<string | undefined> {
  try {
    return await accept({ host: foreignHost, port });
  } catch {
    return undefined;
  }
}

function endTests(commands: SpawnerCommands): BenchTest[] {
  return [
    {
      name: 'an end on demand is complete when it is told, and may be demanded again',
      async run(bench) {
        const spawner = await bench.create();
        const server = await bench.start(spawner);
        await assertReady(server);
        await bench.stop(spawner, server);
        await assertEnded(spawner, server);
        const probe = await waitUntilReady({ url: server.url, path: '/', timeoutMs: 1 });
        assert.ok(!probe.ready, 'it still answers');
        await server.exited;
        await bench.stop(spawner, server);
      },
    },
    {
      name: 'an end comes also to a server that does not listen to SIGTERM',
      async run(bench) {
        const spawner = await bench.create();
        const server = await bench.start(spawner, { command: commands.stubborn });
        await bench.seen('ignoring');
        const signal = AbortSignal.timeout(30_000);
        await spawner.stop(server.state, { graceMs: 100, signal });
        await assertEnded(spawner, server);
      },
    },
    {
      name: 'an end by itself is noticed, with its exit code where that is known',
      async run(bench) {
        const spawner = await bench.create();
        // One that ends so early may also fail its start: then that is how it is noticed.
        const command = commands.exits;
        const server = await bench.start(spawner, { command }).catch(() => undefined);
        if (server === undefined) return;
        if (server.exited !== undefined) assert.equal((await server.exited).code, 3);
        else await untilEnded(spawner, server);
        await assertEnded(spawner, server);
        await bench.stop(spawner, server);
      },
    },
    {
      name: 'an end of one server leaves the others alone',
      async run(bench) {
        const spawner = await bench.create();
        const one = await bench.start(spawner, { serverId: 'contract-1' });
        const other = await bench.start(spawner, { serverId: 'contract-2' });
        await bench.stop(spawner, one);
        await assertReady(other);
      },
    },
  ];
}

function restartTests(): BenchTest[] {
  const handlers = { onOutput: () => undefined };
  return [
    {
      name: 'the next hub finds a server again by its state, and can stop it',
      async run(bench) {
        const former = await bench.create();
        const server = await bench.start(former);
        await assertReady(server);

        const next = await bench.restart(former);
        const state = stored(server.state);
        const found = await next.restore(state, handlers);
        assert.equal(found?.url, server.url);
        await assertReady(server);
        await assertRuns(next, { state });
        await next.stop(state, { graceMs: 5_000, signal: AbortSignal.timeout(30_000) });
        await assertEnded(next, { state });
        await found?.exited;
      },
    },
    {
      name: 'the next hub does not find what has ended meanwhile',
      async run(bench) {
        const former = await bench.create();
        const server = await bench.start(former);
        await bench.stop(former, server);
        const next = await bench.create();
        assert.equal(await next.restore(server.state, handlers), undefined);
      },
    },
    {
      name: 'a state that is none leads nowhere',
      async run(bench) {
        const spawner = await bench.create();
        for (const state of [{}, { pid: 1 }, { serverId: 'contract-1' }, { url: 7 }]) {
          assert.equal(await spawner.restore(state, handlers), undefined);
          await assertEnded(spawner, { state });
          await spawner.stop(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
        }
      },
    },
    {
      name: 'the next hub ends what a killed hub could not write down',
      async run(bench) {
        const former = await bench.create();
        const server = await bench.start(former);
        await assertReady(server);
        const next = await bench.create();
        await next.discard?.('contract-1', { graceMs: 5_000, isOurs: () => true });
        await next.discard?.('contract-1', { graceMs: 5_000, isOurs: () => true });
        if (next.discard !== undefined) await assertEnded(next, server);
      },
    },
  ];
}

/** A start that is at the point where it keeps its state; undefined when it is over and has kept none. */
async function startUntilKept(
  bench: Bench,
  spawner: Spawner,
  changed: Partial<SpawnRequest>,
): Promise<{ readonly kept: SpawnerState; readonly starting: Promise<SpawnedServer> } | undefined> {
  const atState = Promise.withResolvers<SpawnerState>();
  const { keepState } = changed;
  const starting = spawner.start(
    bench.request({
      ...changed,
      async keepState(state) {
        await keepState?.(state);
        atState.resolve(stored(state));
      },
    }),
  );
  starting.catch(() => undefined);
  const first = await Promise.race([
    atState.promise.then((kept) => ({ kept })),
    starting.then((server) => ({ server })),
  ]);
  if ('kept' in first) return { kept: first.kept, starting };
  bench.adopt(spawner, first.server);
  return undefined;
}

/** For spawners that keep the state of a start that is under way; the others have nothing to go on with. */
function resumeTests(): BenchTest[] {
  const addressless = () => new Promise<never>(() => undefined);
  return [
    {
      name: 'a start that kept its state and is left by one hub is gone on with by the next',
      async run(bench) {
        const former = await bench.create();
        let left: Promise<void> | undefined;
        const start = await startUntilKept(bench, former, {
          // At this moment the hub ends, before there can be an address.
          async keepState() {
            left = former[Symbol.asyncDispose]?.();
          },
          awaitAddress: addressless,
        });
        if (start === undefined) return;
        const { kept, starting } = start;
        assert.ok(!JSON.stringify(kept).includes(secret), 'the kept state holds a secret');
        await left;
        await assert.rejects(starting, 'a start must reject when its hub ends');

        const next = await bench.create();
        assert.ok(next.resume !== undefined, 'it keeps a state, and cannot resume');
        const found = await next.resume(kept, bench.request());
        assert.ok(found !== undefined, 'what was started is lost');
        bench.adopt(next, found);
        await assertReady(found);
        await assertRuns(next, found);
        await bench.stop(next, found);
        await assertEnded(next, found);
      },
    },
    {
      name: 'an address that was told once is known to the next hub, should this one be killed',
      async run(bench) {
        const former = await bench.create();
        let kept: SpawnerState | undefined;
        const server = await bench.start(former, {
          keepState: async (state) => {
            kept = stored(state);
          },
        });
        if (kept === undefined) return;
        await assertReady(server);
        const next = await bench.create();
        const request = bench.request({ awaitAddress: addressless });
        const late = setTimeout(outputTimeoutMs, 'still waiting' as const, { ref: false });
        const found = await Promise.race([next.resume?.(kept, request), late]);
        assert.ok(found !== 'still waiting', 'it waits for an address that was told already');
        assert.equal(found?.url, server.url);
        await assertReady(server);
      },
    },
    {
      name: 'a start that kept its state and has ended meanwhile is not gone on with',
      async run(bench) {
        const spawner = await bench.create();
        let kept: SpawnerState | undefined;
        const server = await bench.start(spawner, {
          keepState: async (state) => {
            kept = stored(state);
          },
        });
        await bench.stop(spawner, server);
        const next = await bench.create();
        for (const state of [{}, { serverId: 'contract-1' }, ...(kept === undefined ? [] : [kept])])
          assert.equal(await next.resume?.(state, bench.request()), undefined);
      },
    },
    {
      name: 'a start that kept its state and is given up leaves nothing',
      async run(bench) {
        const spawner = await bench.create();
        const cancel = new AbortController();
        const start = await startUntilKept(bench, spawner, {
          signal: cancel.signal,
          awaitAddress: addressless,
        });
        if (start === undefined) return;
        cancel.abort(new Error('given up'));
        await assert.rejects(start.starting);
        await assertEnded(spawner, { state: start.kept });
      },
    },
  ];
}

function deleteTests(): BenchTest[] {
  const identity = (serverId: string) => ({
    serverId,
    userName: 'ann',
    serverName: '',
    objectName: serverId,
    accountName: 'ann',
  });
  const remove = (spawner: Spawner, serverId: string, withUser: boolean) =>
    spawner.delete?.(identity(serverId), { withUser, signal: AbortSignal.timeout(30_000) });
  return [
    {
      name: 'a deletion may be repeated, and the server be made and started again',
      async run(bench) {
        const spawner = await bench.create();
        const server = await bench.start(spawner);
        await bench.stop(spawner, server);
        for (const withUser of [false, false, true, true])
          await remove(spawner, 'contract-1', withUser);
        await assertEnded(spawner, server);
        await assertReady(await bench.start(spawner));
      },
    },
    {
      name: 'a deletion of a server that was never started does nothing',
      async run(bench) {
        const spawner = await bench.create();
        await remove(spawner, 'contract-9', false);
      },
    },
    {
      name: 'a deletion of one server leaves the others alone',
      async run(bench) {
        const spawner = await bench.create();
        const one = await bench.start(spawner, { serverId: 'contract-1' });
        const other = await bench.start(spawner, { serverId: 'contract-10' });
        await bench.stop(spawner, one);
        await remove(spawner, 'contract-1', false);
        await assertReady(other);
        await assertRuns(spawner, other);
      },
    },
  ];
}

function engineTests(engine: SpawnerEngine): BenchTest[] {
  return [
    {
      name: 'a server is unknown while the engine does not answer, not gone, and known again after it',
      async run(bench) {
        const spawner = await bench.create();
        const server = await bench.start(spawner);
        await assertReady(server);
        await engine.takeAway();
        try {
          const result = await spawner.poll(server.state);
          assert.equal(result.running, 'unknown');
          assert.notEqual('reason' in result ? result.reason : '', '');
          const next = await bench.create();
          const handlers = { onOutput: () => undefined };
          await assert.rejects(next.restore(stored(server.state), handlers), Error);
          await assert.rejects(bench.start(next, { serverId: 'contract-2' }), Error);
          assert.ok(!bench.logged.join('\n').includes(secret), 'the log holds a secret');
        } finally {
          await engine.bringBack();
        }
        await untilKnown(spawner, server);
        await assertRuns(spawner, server);
        await assertReady(server);
      },
    },
  ];
}

/** Engines that come back may need a moment. */
async function untilKnown(spawner: Spawner, { state }: SpawnedServer): Promise<void> {
  const timeout = AbortSignal.timeout(outputTimeoutMs);
  while ((await spawner.poll(state)).running === 'unknown') {
    timeout.throwIfAborted();
    await setTimeout(100);
  }
}
