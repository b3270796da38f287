import type { Logger } from 'pino';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { isOfOneMachine } from '../../platform/config/bind-address.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { InstanceAddress } from './channel-caller.ts';
import type { Instance } from './instance.ts';
import { hasEnded } from './instance-lease.ts';
import { type InstanceStore, leaseMs } from './instance-store.ts';

/** The instances of the hub, as far as they were read last. */
export interface InstanceDirectory extends AsyncDisposable {
  /** Undefined for one that is not known, or no longer. */
  find(id: string): Instance | undefined;
  addressOf(id: string): InstanceAddress | undefined;
  list(): readonly Instance[];
  /** Calls back after they were read. Returns how to stop listening. */
  onRefresh(listener: () => void): () => void;
  /** Reads them again. Throws when the database does not answer. */
  refresh(): Promise<readonly Instance[]>;
}

/** An instance beside the one that answers. */
export interface InstancePlace extends InstanceState {
  /** Whether it is the one that answers. */
  readonly isHere: boolean;
  /** Whether its settings differ from those of the instance that answers. */
  readonly hasOtherSettings: boolean;
}

interface InstanceState {
  readonly instance: Instance;
  readonly isUp: boolean;
  /** When it last gave a sign of life, by the clock of the database; undefined where that was not written down. */
  readonly downSince: Date | undefined;
  /** Until when what it owns is its own; undefined where no other could take it. */
  readonly leaseUntil: Date | undefined;
}

const refreshMs = 2_000;

export async function openInstanceDirectory(deps: {
  readonly store: Pick<InstanceStore, 'list' | 'endLease'>;
  readonly database: Pick<HubDatabase, 'onChange' | 'announceChange'>;
  /** Whether other instances may use the database. */
  readonly isShared: boolean;
  readonly here: Pick<Instance, 'id' | 'machineId'>;
  readonly log: Logger;
}): Promise<InstanceDirectory> {
  const { store, database, here, log } = deps;
  let known = new Map<string, Instance>();
  const listeners = new Set<() => void>();
  /** The leases that were ended from here. */
  const ended = new Set<string>();

  async function refresh(): Promise<readonly Instance[]> {
    const instances = await store.list();
    for (const instance of instances) tellLoss(known.get(instance.id), instance);
    known = new Map(instances.map((each) => [each.id, each]));
    for (const listener of listeners) listener();
    return instances;
  }

  /** Says in the log that a lease has ended of which it was not written already. */
  function tellLoss(before: Instance | undefined, now: Instance): void {
    if (before?.isLive !== true || now.isLive || now.id === here.id || ended.delete(now.id)) return;
    log.warn(
      { instance: now.name, host: now.host, leaseUntil: now.leaseUntil },
      'instance lease expired',
    );
  }

  /** On its own machine it is seen at once that an instance was killed; elsewhere its lease has to end. */
  async function endKilled(): Promise<void> {
    for (const instance of known.values()) {
      if (!instance.isLive || instance.id === here.id || !hasEnded(instance, here)) continue;
      ended.add(instance.id);
      await store.endLease(instance.id);
      log.warn({ instance: instance.name, process: instance.process.pid }, 'instance lost');
      database.announceChange({ kind: 'instances_changed' });
    }
  }

  await refresh();
  const refreshing = createPeriodic({
    intervalMs: refreshMs,
    async work() {
      if (!deps.isShared) return;
      await refresh();
      await endKilled();
    },
    onError: (error) => log.debug({ err: error }, 'could not read the instances of the hub'),
  });
  const stopListening = database.onChange(
    () => void refreshing.run(),
    ['instances_changed', 'all'],
  );

  return {
    find: (id) => known.get(id),
    list: () => [...known.values()],
    refresh,
    onRefresh(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    addressOf(id) {
      const instance = known.get(id);
      if (instance === undefined) {
        void refreshing.run();
        return undefined;
      }
      return { id, name: instance.name, url: urlFrom(here, instance) };
    },
    async [Symbol.asyncDispose]() {
      stopListening();
      await refreshing[Symbol.asyncDispose]();
    },
  };
}

/** Where an instance is reached from another one: a loopback address is of its own machine only. */
export function urlFrom(
  here: Pick<Instance, 'machineId'>,
  { url, machineId }: Pick<Instance, 'url' | 'machineId'>,
): string | undefined {
  if (url === undefined) return undefined;
  return machineId === here.machineId || !isOfOneMachine(url) ? url : undefined;
}

/** Each instance beside the one that answers. */
export function placesOf(
  instances: readonly Instance[],
  here: Pick<Instance, 'id' | 'machineId'>,
): InstancePlace[] {
  const own = instances.find(({ id }) => id === here.id);
  return instances.map((instance) => ({
    ...placeOf(instance, here),
    isHere: instance.id === here.id,
    hasOtherSettings: own !== undefined && own.settingsDigest !== instance.settingsDigest,
  }));
}

/** Whether an instance runs, as far as can be told from a machine, and since when it does not. */
export function placeOf(
  instance: Instance,
  here: Pick<Instance, 'machineId'> & Partial<Pick<Instance, 'id'>>,
): InstanceState {
  // On SQLite a lease has no end, and nothing is written down of when it was last there.
  const isEndless = instance.leaseUntil.getUTCFullYear() > 9_999;
  const leaseUntil = isEndless ? undefined : instance.leaseUntil;
  if (isUp(instance, here)) return { instance, isUp: true, downSince: undefined, leaseUntil };
  const downSince = leaseUntil && new Date(leaseUntil.getTime() - leaseMs);
  return { instance, isUp: false, downSince, leaseUntil };
}

export function isUp(instance: Instance, here: Parameters<typeof placeOf>[1]): boolean {
  return instance.isLive && (instance.id === here.id || !hasEnded(instance, here));
}
