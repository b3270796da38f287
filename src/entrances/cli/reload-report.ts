import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Instance } from '../../cluster/instances/instance.ts';
import { createInstanceStore, type InstanceStore } from '../../cluster/instances/instance-store.ts';
import {
  type ReloadReport,
  reloadOperation,
  reloadOutcomeSchema,
  reloadTimeoutMs,
} from '../../cluster/instances/reload-operation.ts';
import type { Config } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { createHubChannel, type HubChannel } from './hub-channel.ts';

const othersLimitMs = 10_000;
const pollMs = 200;

/**
 * Has the hub of this process reload, waits, and says what changed, and whether the other instances on its database
 * have the same settings now. Throws where the hub keeps its former configuration or does not say what came of it.
 */
export async function reloadAndReport(
  config: Pick<Config, 'Hub' | 'directory' | 'basePath'>,
  pid: number,
): Promise<string> {
  const { Hub, directory } = config;
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(Hub.database_url, { directory, log });
  const store = createInstanceStore(database);
  const channel = createHubChannel(config, database);
  const { machineId } = channel.here;
  const instance = (await store.list()).find(
    (each) => each.isLive && each.machineId === machineId && each.process.pid === pid,
  );
  const answer =
    instance && (await ask(channel, instance).catch((error: unknown) => unlessSilent(error)));
  if (instance === undefined || answer === undefined) {
    process.kill(pid, 'SIGHUP');
    return (
      `The hub (process ${pid}) does not answer yet: it reads the configuration again as soon as it has started.\n` +
      'Its log says what comes of it.\n'
    );
  }
  const outcome = reloadOutcomeSchema.parse(answer);
  if (outcome.outcome === 'refused') {
    throw new HubError('conflict', `The hub keeps its former configuration: ${outcome.problem}`);
  }
  const changes = describeChanges(outcome);
  const comparison = await waitForOthers(store, instance.id);
  return `The hub (process ${pid}) has reloaded.\n${changes}${describeOthers(comparison)}`;
}

function ask(channel: HubChannel, instance: Instance): Promise<unknown> {
  return channel.call(instance, reloadOperation, undefined, { timeoutMs: reloadTimeoutMs });
}

/** A hub that starts has its lease before it answers. */
function unlessSilent(error: unknown): undefined {
  if (error instanceof HubError && error.code === 'unavailable') return undefined;
  throw error;
}

function describeChanges(report: ReloadReport): string {
  const { services, warnings } = report;
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['In force now', [...report.changed, ...(report.filesChanged ? ['files of the look'] : [])]],
    ['Roles given', report.given.roles],
    ['Members added to groups', report.given.members],
    ['Services added', services.added],
    ['Services removed', services.removed],
    ['Services restarted', services.restarted],
    ['Services changed while running', services.updated],
    ['Needs a restart of the hub', report.needRestart],
  ];
  const lines = rows.flatMap(([title, names]) =>
    names.length === 0 ? [] : `${title}: ${names.join(', ')}`,
  );
  if (lines.length === 0) lines.push('Nothing has changed.');
  return [...lines, ...warnings.map((warning) => `Warning: ${warning}`), ''].join('\n');
}

interface Comparison {
  readonly count: number;
  readonly others: readonly Instance[];
}

async function waitForOthers(
  store: Pick<InstanceStore, 'list'>,
  instanceId: string,
): Promise<Comparison> {
  const giveUpAtMs = performance.now() + othersLimitMs;
  for (;;) {
    const live = (await store.list()).filter(({ isLive }) => isLive);
    const own = live.find(({ id }) => id === instanceId);
    const others = live.filter(({ settingsDigest }) => settingsDigest !== own?.settingsDigest);
    if (others.length === 0 || performance.now() > giveUpAtMs)
      return { count: live.length, others };
    await delay(pollMs);
  }
}

function describeOthers({ count, others }: Comparison): string {
  if (count === 1) return '';
  if (others.length === 0) return `All ${count} instances have the same settings now.\n`;
  const names = others.map(({ name, host }) => `${name} (on ${host})`).join(', ');
  return (
    `Of ${count} instances, these have other settings: ${names}.\n` +
    `Give all the same configuration, then run ${hubCommand('reload')} again; their logs say what they refused.\n`
  );
}
