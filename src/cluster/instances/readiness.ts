import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { createBoundedCheck } from '../../platform/concurrency/answer-cache.ts';
import type { Config } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { KeyvSpaces } from '../../platform/store/keyv.ts';
import type { SettingStore } from '../../platform/store/setting-store.ts';
import type { InstanceLease } from './instance-lease.ts';

/** What the hub cannot do its work without. */
type ReadinessPart = 'database' | 'store' | 'lease' | 'listeners';

/** What is wrong with each part, in a sentence; undefined where nothing is. */
type ReadinessReport = Readonly<Record<ReadinessPart, string | undefined>>;

/** Whether requests that need the database can be answered now. */
export interface Readiness {
  /** Answers within two seconds, also when the database does not. Never rejects. */
  check(): Promise<ReadinessReport>;
}

/** With what else has to be done, an answer comes within two seconds. */
const limitMs = 1_500;
/** However many ask, the database is asked once in this time. */
const freshMs = 1_000;

/** Logs when the hub stops being ready and when it is again, as far as anyone asks. */
export function createReadiness({
  config,
  database,
  keyv,
  settings,
  instance,
  listeners: { publicServer, internalServer },
  log,
}: {
  readonly config: { readonly Hub: Pick<Config['Hub'], 'gateways'> };
  readonly database: Pick<HubDatabase, 'problem'>;
  readonly keyv: Pick<KeyvSpaces, 'space'>;
  readonly settings: Pick<SettingStore, 'find'>;
  readonly instance: Pick<InstanceLease, 'isHeld'>;
  readonly listeners: { readonly publicServer: Server; readonly internalServer: Server };
  readonly log: Logger;
}): Readiness {
  // With gateways, they listen in public.
  const servers = config.Hub.gateways > 0 ? [internalServer] : [publicServer, internalServer];
  const limits = { describe, limitMs, freshMs };
  const checkDatabase = createBoundedCheck({
    ...limits,
    check: () => settings.find('hub_id'),
  });
  const space = keyv.space('readiness');
  const checkStore = createBoundedCheck({ ...limits, check: () => space.get('any') });
  let wasReady = true;

  return {
    async check() {
      const [answer, store] = await Promise.all([checkDatabase(), checkStore()]);
      const report: ReadinessReport = {
        database: database.problem()?.toString() ?? answer,
        store,
        lease: instance.isHeld()
          ? undefined
          : 'the database could not be told for ten seconds that this hub is there',
        listeners: servers.every(({ listening }) => listening) ? undefined : 'hub stopping',
      };
      const isReady = Object.values(report).every((problem) => problem === undefined);
      if (isReady !== wasReady) {
        if (isReady) log.info({}, 'hub ready again');
        else log.warn({ problems: report }, 'hub not ready');
      }
      wasReady = isReady;
      return report;
    },
  };
}

function describe(error: unknown): string {
  return error instanceof HubError ? error.message : String(error);
}
