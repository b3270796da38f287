import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Config } from '../config/config.ts';
import type { Instance } from '../instances/instance.ts';
import { createInstanceStore } from '../instances/instance-store.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';

const reloadLimitMs = 15_000;
const othersLimitMs = 10_000;
const pollMs = 200;

/**
 * Tells a hub to reload, and what came of it among the instances on its PostgreSQL. Empty for a hub on SQLite, which is
 * the only one, and where the database cannot be reached.
 */
export async function reloadAndReport(
  { Hub, directory }: Pick<Config, 'Hub' | 'directory'>,
  tellHub: () => void,
): Promise<string> {
  const database = Hub.database_url.startsWith('sqlite:')
    ? undefined
    : await openDatabase(Hub.database_url, { directory, log: pino({ level: 'silent' }) }).catch(
        () => undefined,
      );
  if (database === undefined) {
    tellHub();
    return '';
  }
  await using _open = database;
  const reloaded = hearReload(database);
  tellHub();
  const instanceId = await Promise.race([
    reloaded,
    delay(reloadLimitMs, undefined, { ref: false }),
  ]);
  if (instanceId === undefined) {
    return 'The hub has not taken the configuration over within 15 seconds; its log says why.\n';
  }
  return describe(await waitForOthers(database, instanceId));
}

function hearReload(database: HubDatabase): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  database.onChange((subject) => {
    if (subject?.kind === 'reload_requested') resolve(subject.instanceId);
  });
  return promise;
}

interface Comparison {
  readonly count: number;
  readonly others: readonly Instance[];
}

async function waitForOthers(database: HubDatabase, instanceId: string): Promise<Comparison> {
  const store = createInstanceStore(database);
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

function describe({ count, others }: Comparison): string {
  if (count === 1) return '';
  if (others.length === 0) return `All ${count} instances have the same settings now.\n`;
  const names = others.map(({ name, host }) => `${name} (on ${host})`).join(', ');
  return (
    `Of ${count} instances, these have other settings: ${names}.\n` +
    'Give all the same configuration, then run hub reload again; their logs say what they refused.\n'
  );
}
