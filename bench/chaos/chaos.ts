import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../test/support/free-port.ts';
import { createHubFolder, type HubFolder } from '../../test/support/hub-process.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { until } from '../../test/support/test-hub.ts';
import { childFaults, type Fault, machineFaults } from './faults.ts';
import { type FoundProcess, processesOf } from './processes.ts';
import { createRandom, type Random } from './random.ts';
import { createTormentedHub, type DetailedHolding, type TormentedHub } from './tormented-hub.ts';
import { createTraffic, findLost, type Traffic } from './traffic.ts';

export type Database = 'sqlite' | 'postgres';

export interface ChaosReport {
  readonly database: Database;
  /** How often what happened. */
  readonly faults: Readonly<Record<string, number>>;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  /** What was acknowledged and is not so. */
  readonly lost: readonly string[];
  readonly orphans: readonly FoundProcess[];
  readonly before: DetailedHolding;
  readonly after: DetailedHolding;
  /** Whatever else went otherwise than it must. */
  readonly blamed: readonly string[];
  /** Whether the log had a disk of its own that could be filled. */
  readonly hasLogDisk: boolean;
}

const programs = join(import.meta.dirname, '..', '..', 'fixtures', 'apps');
const unrulyApp = join(import.meta.dirname, '..', 'soak', 'unruly-app.ts');
const warmUpMs = 6_000;
const settleMs = 45_000;

/**
 * Puts a hub under traffic while everything around it breaks: for half of the time the hub itself is
 * killed as well, for the other half one process endures the rest. Then counts what was lost.
 */
export async function chaos(options: {
  readonly database: Database;
  readonly seconds: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}): Promise<ChaosReport> {
  const { database, seconds, seed, say } = options;
  await using disposables = new AsyncDisposableStack();
  const postgres = database === 'postgres' ? disposables.use(await startPostgres()) : undefined;
  const folder = disposables.use(await createHubFolder());
  await configure(folder, await postgres?.createDatabase());
  const hub = disposables.use(await createTormentedHub(folder));
  const traffic = createTraffic(folder, createRandom(seed + 1));
  const blamed: string[] = [];
  const faults: Record<string, number> = {};
  const blame = (what: string) => {
    say(`NOT AS IT MUST BE: ${what}`);
    blamed.push(what);
  };
  const deps = { hub, traffic, postgres, blame };
  const forMachine = createRandom(seed + 2);
  const forChildren = createRandom(seed + 3);
  const onMachine = machineFaults({ ...deps, random: forMachine });
  const onChildren = childFaults({ ...deps, random: forChildren });

  async function torment(phaseMs: number, mayEndHub: boolean): Promise<void> {
    const deadlineMs = performance.now() + phaseMs;
    const onThis = onMachine.filter(({ endsHub }) => mayEndHub || endsHub !== true);
    const turn = async (among: readonly Fault[], random: Random, isSure: boolean) => {
      for (const fault of random.deal(among)) {
        if (performance.now() > deadlineMs) return;
        faults[fault.name] = (faults[fault.name] ?? 0) + 1;
        if (isSure) say(fault.name);
        try {
          await fault.happen();
        } catch (error) {
          // What befalls children is asked of a hub that may be away; that is no failure.
          if (isSure) throw error;
        }
        await pause(random.between(100, 1_000));
      }
    };
    await Promise.all([turn(onThis, forMachine, true), turn(onChildren, forChildren, false)]);
  }

  await hub.start();
  for (const name of traffic.serverUsers) await traffic.api(`/users/${name}`, 'POST');
  traffic.start();
  await torment((seconds * 1000) / 2, true);
  await untilCalm(traffic, folder);
  traffic.start();
  await pause(warmUpMs);
  await untilCalm(traffic, folder);
  const before = await settled(hub);
  say(`before: ${before.files.length} files open`);
  traffic.start();
  await torment((seconds * 1000) / 2, false);
  await untilCalm(traffic, folder);
  const after = await settled(hub, before);
  say(`after: ${after.files.length} files open`);

  const { created, deleted, revokedTokens } = traffic.ledger;
  const lost = await findLost(traffic, folder);
  const code = await hub.end('SIGTERM');
  if (code !== 0) blame(`the hub ended with ${code} on SIGTERM`);
  for (const text of hub.unexpectedEnds) blame(`the hub ended by itself: ${text}`);
  const log = await readFile(hub.logFile, 'utf8');
  const bugs = log
    .split('\n')
    .filter((line) => /unhandled rejection|did not stop in time/.test(line));
  for (const line of new Set(bugs)) blame(`in the log: ${line.slice(0, 2_000)}`);
  const orphans = processesOf(folder.directory);
  for (const { pid } of orphans) process.kill(pid, 'SIGKILL');
  return {
    database,
    faults,
    outcomes: traffic.outcomes,
    acknowledged: created.size + deleted.size + revokedTokens.size,
    lost,
    orphans,
    before,
    after,
    blamed,
    hasLogDisk: hub.logDisk !== undefined,
  };
}

async function configure(folder: HubFolder, databaseUrl: string | undefined): Promise<void> {
  const port = await freePort();
  await folder.configure({
    Hub: {
      ...(databaseUrl === undefined ? {} : { database_url: databaseUrl }),
      concurrent_spawn_limit: 0,
      services: [
        {
          name: 'app',
          url: `http://127.0.0.1:${port}`,
          command: [process.execPath, unrulyApp, String(port)],
          access: 'gateway',
        },
      ],
    },
    Spawner: { cmd: ['perl', join(programs, 'trivial.pl')], access: 'gateway', poll_interval: 5 },
    Proxy: {
      upstream_timeout: 5,
      extra_routes: { '/open/': `http://127.0.0.1:${port}` },
    },
  });
}

/** Ends the traffic and all servers, and waits until everything that is to run answers. */
async function untilCalm(traffic: Traffic, { url }: HubFolder): Promise<void> {
  await traffic.stop();
  const isServed = async (path: string) => {
    const answer = await traffic.ask(url + path);
    await answer.text();
    return answer.status === 200;
  };
  await until(
    async () =>
      (await isServed('hub/health').catch(() => false)) &&
      (await isServed('services/app/ok').catch(() => false)),
    'the hub and its service answer again',
  );
  for (const name of traffic.serverUsers) {
    await until(async () => {
      const server = await traffic.api(`/users/${name}/server`).catch(() => undefined);
      if (server === undefined) return false;
      if (server.status === 404) return true;
      const { stopped } = (await server.json()) as { stopped?: boolean };
      if (stopped === true) return true;
      await traffic.api(`/users/${name}/server`, 'DELETE').catch(() => undefined);
      return false;
    }, `the server of ${name} is stopped`);
  }
  await traffic.leave();
}

/** Waits for closing handshakes, idle connections and the like to come to their end. */
async function settled(hub: TormentedHub, wanted?: DetailedHolding): Promise<DetailedHolding> {
  const startedAt = performance.now();
  let last = await hub.measure();
  for (;;) {
    await pause(1_000);
    const now = await hub.measure();
    const waitedMs = performance.now() - startedAt;
    const isCalm = now.files.length === last.files.length && now.sockets === last.sockets;
    const isBack = wanted === undefined || now.files.length <= wanted.files.length;
    // Idle connections to the database are kept for ten seconds.
    if ((isCalm && isBack && waitedMs > 15_000) || waitedMs > settleMs) return now;
    last = now;
  }
}
