import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { processesOf } from '../chaos/processes.ts';
import { createRandom } from '../chaos/random.ts';
import { createTraffic, findLost } from '../chaos/traffic.ts';
import { watchCopies } from './copies.ts';
import { adminToken, type Member, startFleet, untilServicesAnswer } from './fleet.ts';

export interface KillsReport {
  readonly kills: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  readonly lost: readonly string[];
  readonly doubles: readonly string[];
  readonly orphans: readonly string[];
  /** How long after each kill every service answered again, sorted. */
  readonly recoveredMs: readonly number[];
  readonly outcomes: Readonly<Record<string, number>>;
}

const maxRecoveryMs = 60_000;
/** After a slower one the logs are kept. */
const slowRecoveryMs = 10_000;

/**
 * Kills hubs and gateways at random under mixed traffic, restarts of PostgreSQL among them. Half of the
 * killed come back at once, half only when the others have taken over.
 */
export async function killAtRandom(options: {
  readonly kills: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}): Promise<KillsReport> {
  const { say } = options;
  const random = createRandom(options.seed);
  await using fleet = await startFleet({ hubs: 3, gateways: 2, services: 4 });
  using copies = watchCopies(fleet.directories);
  const traffic = createTraffic(fleet, createRandom(options.seed + 1));
  for (const name of traffic.serverUsers) await traffic.api(`/users/${name}`, 'POST');
  traffic.start();
  const kills: Record<string, number> = {};
  const recoveredMs: number[] = [];
  const members = [...fleet.hubs, ...fleet.gateways];

  const faults = [
    ...Array.from({ length: 6 }, () => 'hub' as const),
    ...Array.from({ length: 3 }, () => 'gateway' as const),
    'postgres' as const,
  ];
  const dealt = random.deal(faults);
  for (let kill = 1; kill <= options.kills; kill += 1) {
    const fault = dealt.next().value;
    kills[fault] = (kills[fault] ?? 0) + 1;
    let comesBack: () => Promise<void>;
    let victimName = 'postgres';
    if (fault === 'postgres') {
      await fleet.postgres.stop();
      await pause(random.between(200, 3_000));
      comesBack = () => fleet.postgres.start();
    } else {
      const victim = random.pick(fault === 'hub' ? fleet.hubs : fleet.gateways);
      victimName = victim.name;
      say(`${kill}: killing ${victimName}`);
      say(`  at ${new Date().toISOString()}, process ${victim.pid}`);
      await victim.end('SIGKILL');
      comesBack = () => victim.start();
    }
    const killedAt = performance.now();
    const isBackAtOnce = fault !== 'hub' || random.isTrue(0.5);
    if (isBackAtOnce) await comesBack();
    await untilServicesAnswer(fleet, maxRecoveryMs, fleet.serviceNames).catch(
      async (error: unknown) => {
        for (const member of members) {
          say(`${member.name}: ${await servicesAt(member)}`);
          say(member.log().split('\n').slice(-12).join('\n'));
        }
        throw error;
      },
    );
    const tookMs = performance.now() - killedAt;
    recoveredMs.push(tookMs);
    say(
      `${kill}: ${victimName} ${isBackAtOnce ? 'back at once' : 'away'}, services after ${(tookMs / 1000).toFixed(1)} s`,
    );
    if (tookMs > slowRecoveryMs) say(`  the logs are kept in ${await keepLogs(members)}`);
    if (!isBackAtOnce) await comesBack();
    await pause(random.between(200, 2_000));
  }

  await traffic.stop();
  const lost = await findLost(traffic, fleet);
  for (const name of traffic.serverUsers) {
    await traffic.api(`/users/${name}/server`, 'DELETE');
    while (
      ((await (await traffic.api(`/users/${name}`)).json()) as { server: unknown }).server !== null
    )
      await pause(200);
  }
  await traffic.leave();
  await Promise.all(fleet.gateways.map((gateway) => gateway.end('SIGTERM')));
  await Promise.all(fleet.hubs.map((hub) => hub.end('SIGTERM')));
  const orphans = fleet.directories.flatMap((directory) =>
    processesOf(directory).map(({ pid, command }) => {
      process.kill(pid, 'SIGKILL');
      return `${pid} ${command}`;
    }),
  );
  if (lost.length + copies.doubles.length + orphans.length > 0) {
    say(`the logs are kept in ${await keepLogs(members)}`);
  }
  const { created, deleted, revokedTokens } = traffic.ledger;
  return {
    kills,
    acknowledged: created.size + deleted.size + revokedTokens.size,
    lost,
    doubles: [...copies.doubles],
    orphans,
    recoveredMs: recoveredMs.sort((left, right) => left - right),
    outcomes: traffic.outcomes,
  };
}

async function keepLogs(members: readonly Member[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cluster-logs-'));
  for (const { name, log } of members) await writeFile(join(folder, `${name}.log`), log());
  return folder;
}

/** What a hub says of its services, for the reader of a failure. */
async function servicesAt({ url }: Member): Promise<string> {
  try {
    const headers = { authorization: `token ${adminToken}` };
    const ready = await fetch(`${url}hub/ready`);
    if (ready.status !== 200) return `/hub/ready: ${ready.status} ${await ready.text()}`;
    const answer = await fetch(`${url}hub/api/services`, { headers });
    const services = (await answer.json()) as Record<string, Record<string, unknown>>;
    return Object.values(services)
      .map(({ name, state, instance }) => `${name} ${state} at ${JSON.stringify(instance)}`)
      .join(', ');
  } catch (error) {
    return String(error);
  }
}
