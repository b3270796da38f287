import type { Logger } from 'pino';
import type { InstanceStore } from '../../cluster/instances/instance-store.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import type { Config } from '../../platform/config/config.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { ResourceUsage, SpawnerState } from '../../plugin/host/spawner.ts';
import type { WriteEnd } from '../servers/unit-events.ts';
import { type Amounts, addAmounts, countUse, noUse, pricesOf, type Subject } from './count-use.ts';
import {
  type Counted,
  createLedgerStore,
  type EndedMeter,
  type OwnedMeter,
} from './ledger-store.ts';

/** Writes what the servers of this instance use. */
export interface Ledger extends AsyncDisposable {
  /** Counts up to now. Never throws. */
  run(): Promise<void>;
  /** Counts one server up to now, as before it is paused. Throws what the database does. */
  count(serverId: string): Promise<void>;
  /**
   * Counts one server up to a time of the monotonic clock at which its run ended, and has that end written in the same
   * transaction. Throws what the database does.
   */
  end(serverId: string, endedAtMs: number, write: WriteEnd): Promise<void>;
}

/** So much of a server's use may be lost when a hub is killed. */
const intervalMs = 30_000;

export function createLedger(hub: {
  readonly database: HubDatabase;
  readonly instanceStore: Pick<InstanceStore, 'renewHeld'>;
  readonly instance: { readonly id: string };
  readonly config: Pick<Config, 'spawners' | 'Spawner'>;
  readonly lifecycle: {
    units(): Iterable<{
      readonly server: { readonly id: string };
      readonly spawnerState: SpawnerState | undefined;
      readonly ownedSinceMs: number | undefined;
    }>;
  };
  readonly usageOfServer: (serverId: string) => ResourceUsage | undefined;
  /** The runs that were counted. */
  readonly onCounted?: (
    running: readonly { readonly serverId: string; readonly subject: Subject }[],
  ) => Promise<void>;
  readonly metrics: {
    countUse(of: Readonly<Record<'profile' | 'engine', string>>, use: Amounts): void;
  };
  readonly log: Logger;
  readonly monotonicMs?: () => number;
}): Ledger {
  const { config, log, monotonicMs = () => performance.now() } = hub;
  const store = createLedgerStore(hub.database, hub.instanceStore);
  /** What was counted last, by the clock of the database and by the monotonic one, which nobody sets. */
  let known = new Map<string, { readonly countedAt: number; readonly atMs: number }>();
  let isEmpty = false;

  function countOwned(
    meter: OwnedMeter,
    unit: { readonly spawnerState: SpawnerState; readonly ownedSinceMs: number | undefined },
    clock: { readonly nowMs: number; readonly atMs: number },
  ): Counted {
    const usage = hub.usageOfServer(meter.serverId);
    const profile = knownProfile(meter.subject.profile, config.Spawner);
    const gpus = gpusOf(profile, config.Spawner);
    const { nowMs, atMs } = clock;
    const last = known.get(meter.serverId);
    let elapsedMs = nowMs - (meter.countedAt ?? meter.startedAt);
    if (last !== undefined && last.countedAt === meter.countedAt) elapsedMs = atMs - last.atMs;
    else if (meter.countedAt === undefined) {
      elapsedMs = Math.min(elapsedMs, atMs - (unit.ownedSinceMs ?? atMs));
    }
    return {
      meter,
      subject: { ...meter.subject, profile, engine: engineOf(unit.spawnerState, config) },
      uses: countUse(
        meter,
        { usage, gpus, isPaused: meter.isPaused },
        { nowMs, elapsedMs },
        pricesOf(profile, config.Spawner),
      ),
      next: {
        cpuSeconds: usage?.cpuSeconds ?? meter.cpuSeconds,
        last: { cpuCores: usage?.cpuCores ?? 0, memoryBytes: usage?.memoryBytes ?? 0, gpus },
      },
    };
  }

  /** Nobody knows when a run ended whose hub was gone: no more than one interval is counted. */
  function countEnded(meter: EndedMeter, nowMs: number): Counted {
    const { last, subject, countedAt = nowMs, endedAt = nowMs } = meter;
    const elapsedMs = Math.min(endedAt - countedAt, intervalMs);
    const reading = { usage: last, gpus: last.gpus };
    return {
      meter,
      subject,
      uses: countUse(
        { cpuSeconds: undefined },
        reading,
        { nowMs, elapsedMs },
        pricesOf(subject.profile, config.Spawner),
      ),
      next: undefined,
    };
  }

  async function record(
    one: {
      readonly serverId?: string;
      readonly endedAtMs?: number;
      readonly write?: WriteEnd;
    } = {},
  ): Promise<void> {
    const { serverId, endedAtMs, write } = one;
    const units = new Map(
      [...hub.lifecycle.units()].flatMap(({ server, spawnerState, ownedSinceMs }) =>
        spawnerState === undefined ? [] : [[server.id, { spawnerState, ownedSinceMs }] as const],
      ),
    );
    if (write !== undefined && !units.has(serverId ?? '')) {
      await write(hub.database.kysely);
      return;
    }
    if (units.size === 0 && isEmpty) return;
    let atMs = monotonicMs();
    const done = await store.record(hub.instance.id, one, ({ owned, ended }, nowMs) => {
      const lateMs = endedAtMs === undefined ? 0 : monotonicMs() - endedAtMs;
      atMs = monotonicMs() - lateMs;
      return [
        ...owned.flatMap((meter) => {
          const unit = units.get(meter.serverId);
          if (unit === undefined) return [];
          const counted = countOwned(meter, unit, { nowMs: nowMs - lateMs, atMs });
          return [endedAtMs === undefined ? counted : { ...counted, next: undefined }];
        }),
        ...ended.map((meter) => countEnded(meter, nowMs)),
      ];
    });
    if (done === undefined) return;
    const { nowMs: countedAt } = done;
    for (const { subject, uses } of done.counted) {
      hub.metrics.countUse(
        { profile: knownProfile(subject.profile, config.Spawner), engine: subject.engine },
        uses.map(({ amounts }) => amounts).reduce(addAmounts, noUse),
      );
    }
    const running = done.counted.filter(({ next }) => next !== undefined);
    if (serverId === undefined) known = new Map();
    else known.delete(serverId);
    for (const { meter } of running) known.set(meter.serverId, { countedAt, atMs });
    isEmpty = serverId === undefined && done.counted.length === 0;
    if (serverId !== undefined) return;
    await hub.onCounted?.(
      running.map(({ meter, subject }) => ({ serverId: meter.serverId, subject })),
    );
  }

  const periodic = createPeriodic({
    intervalMs,
    work: () => record(),
    onError: (error) => log.warn({ err: error }, 'could not record what servers use'),
  });

  return {
    run: () => periodic.run(),
    count: (serverId) => record({ serverId }),
    end: (serverId, endedAtMs, write) => record({ serverId, endedAtMs, write }),
    async [Symbol.asyncDispose]() {
      await periodic[Symbol.asyncDispose]();
      await periodic.run();
    },
  };
}

/** Class of the spawner that has a server. */
function engineOf(state: SpawnerState, { spawners }: Pick<Config, 'spawners'>): string {
  const { spawner: name } = state;
  return (spawners.find((each) => each.name === name) ?? spawners[0])?.class ?? '';
}

/** What a start names as its profile may be any text, each of which would be another row and another series. */
function knownProfile(profile: string, { profiles }: Pick<Config['Spawner'], 'profiles'>): string {
  return profiles.some(({ name }) => name === profile) ? profile : '';
}

function gpusOf(profile: string, spawner: Config['Spawner']): number {
  const chosen = spawner.profiles.find(({ name }) => name === profile);
  return chosen?.gpu_limit ?? spawner.gpu_limit ?? 0;
}
