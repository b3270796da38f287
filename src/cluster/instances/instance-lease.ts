import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { StartupError } from '../../platform/errors.ts';
import { isProcessGone, isSameProcess } from '../../platform/process-table/process-table.ts';
import type { Instance, InstanceDescription } from './instance.ts';
import { type InstanceStore, leaseMs } from './instance-store.ts';

/** The former run of an instance may still be there, as far as can be told from here. */
export class NameInUseError extends StartupError {
  readonly holder: Instance;

  constructor(holder: Instance) {
    super(
      `Another hub named "${holder.name}" runs on this database (${describe(holder)}). ` +
        'Stop it first, or give each a Hub.instance_name of its own.',
    );
    this.holder = holder;
  }
}

/**
 * Refuses an instance beside which the ones that run could not go on as before. Throws NameInUseError where
 * only time can tell whether the former run has ended, and StartupError where that has not or where it does
 * not fit the others.
 */
function requireRoomFor(instance: InstanceDescription, others: readonly Instance[]): void {
  for (const other of others) {
    if (!other.isLive || hasEnded(other, instance)) continue;
    if (other.name === instance.name) throw new NameInUseError(other);
    if (other.basePath !== instance.basePath) {
      throw new StartupError(
        `The hub "${other.name}" on this database (${describe(other)}) serves the path ${other.basePath}, ` +
          `this one ${instance.basePath}. Give both the same path in Hub.bind_url, or a database each.`,
      );
    }
    const isUnderstood = instance.keyDigests.includes(other.keyDigests[0] ?? '');
    const understands = other.keyDigests.includes(instance.keyDigests[0] ?? '');
    if (!isUnderstood || !understands) {
      throw new StartupError(
        `The hub "${other.name}" on this database (${describe(other)}) has another Hub.cookie_secret: ` +
          'neither could read the cookies of the other. Give both the same keys; a new key is first added ' +
          'behind the old one everywhere, and put in front of it after that.',
      );
    }
  }
}

/** Whether the process of an instance is known to be gone: only on its own machine can that be seen. */
export function hasEnded(
  { machineId, process }: Pick<Instance, 'machineId' | 'process'>,
  here: Pick<Instance, 'machineId'>,
): boolean {
  return machineId === here.machineId && isProcessGone(process);
}

function describe({ process, host, version, startedAt }: Instance): string {
  return `process ${process.pid} on ${host}, version ${version}, since ${startedAt.toISOString()}`;
}

/** The lease of this process: what it owns is its own as long as it has the lease. */
export interface InstanceLease extends AsyncDisposable {
  /** Of this run. */
  readonly id: string;
  /** `Hub.instance_name`. */
  readonly name: string;
  readonly machineId: string;
  /** Whether other instances surely leave alone what this one owns, for five seconds at least. */
  isHeld(): boolean;
  /**
   * Whether it was held all the time since then, by the monotonic clock. Otherwise others may have what this
   * instance owned at that time, even though it has its lease again.
   */
  isHeldSince(ms: number): boolean;
  /** Tells the others of new settings. */
  setSettingsDigest(settingsDigest: string): Promise<void>;
  /**
   * Calls back when the database could not be told for ten seconds that this instance is there: what must
   * not run twice has to end within the five seconds that are left. Returns how to stop listening.
   */
  onLost(listener: () => void): () => void;
  /** Calls back when a lost lease is there again; others may have taken over things meanwhile. */
  onRegained(listener: () => void): () => void;
}

const renewalMs = 5_000;
const retryMs = 1_000;
const checkMs = 250;
/** Without a renewal for so long the lease counts as lost. */
const patienceMs = 10_000;
/** Attempts that still wait for an answer, beyond which no further one is begun. */
const maxAttempts = 3;

export interface InstanceLeaseOptions {
  readonly store: InstanceStore;
  readonly instance: InstanceDescription;
  /** False where no other process can come: the lease then needs no renewal and is never lost. */
  readonly isShared: boolean;
  /** Called when this instance came or went. */
  readonly announce: () => void;
  readonly log: Logger;
  readonly signal?: AbortSignal | undefined;
  readonly monotonicMs?: () => number;
}

/**
 * Takes the lease of an instance and keeps it until it is disposed of. The name of a former run that may
 * still be there is waited for until its lease ends. Throws StartupError, with nothing taken, when another
 * instance has the name or does not fit.
 */
export async function openInstanceLease(options: InstanceLeaseOptions): Promise<InstanceLease> {
  const { store, instance, isShared, announce, log } = options;
  const { monotonicMs = () => performance.now() } = options;
  const { id, name, machineId } = instance;
  let description = instance;
  const lostListeners = new Set<() => void>();
  const regainedListeners = new Set<() => void>();
  let renewedAtMs = await enterWhenFree(options, monotonicMs);
  let heldFromMs = renewedAtMs;
  let attemptedAtMs = renewedAtMs;
  let attempts = 0;
  let isLost = false;
  let isClosed = false;
  let isFailing = false;

  const isHeld = () => !isClosed && (!isShared || monotonicMs() - renewedAtMs < patienceMs);

  async function renew(): Promise<void> {
    attempts += 1;
    attemptedAtMs = monotonicMs();
    const sentAtMs = attemptedAtMs;
    try {
      const isThere = await store.renew(id);
      if (!isThere) {
        await store.enter(description, (others) => requireRoomFor(description, others));
        announce();
      }
      // An old answer tells nothing about now.
      if (sentAtMs > renewedAtMs) {
        if (!isThere || sentAtMs - renewedAtMs >= patienceMs) heldFromMs = sentAtMs;
        renewedAtMs = sentAtMs;
      }
      isFailing = false;
    } catch (error) {
      const level = isFailing ? 'debug' : 'warn';
      isFailing = true;
      log[level]({ err: error }, 'could not renew the lease of this instance; trying again');
    } finally {
      attempts -= 1;
    }
    if (isLost && isHeld()) {
      isLost = false;
      log.warn({ instance: name }, 'instance lease regained');
      callAll(regainedListeners, log);
    }
  }

  function check(): void {
    if (!isLost && !isHeld()) {
      isLost = true;
      log.error({ instance: name }, 'instance lease lost, database unreachable');
      callAll(lostListeners, log);
    }
    const isBehind = attemptedAtMs > renewedAtMs && attempts === 0;
    const sinceMs = monotonicMs() - attemptedAtMs;
    if (attempts < maxAttempts && sinceMs >= (isBehind ? retryMs : renewalMs)) void renew();
  }

  const timer = isShared ? setInterval(check, checkMs).unref() : undefined;
  announce();

  return {
    id,
    name,
    machineId,
    isHeld,
    isHeldSince: (ms) => isHeld() && heldFromMs <= ms,
    async setSettingsDigest(settingsDigest) {
      description = { ...description, settingsDigest };
      await store.setSettingsDigest(id, settingsDigest);
      announce();
    },
    onLost: (listener) => addTo(lostListeners, listener),
    onRegained: (listener) => addTo(regainedListeners, listener),
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      isClosed = true;
      try {
        await store.leave(id);
        announce();
      } catch (error) {
        log.warn({ err: error }, 'could not release instance lease');
      }
    },
  };
}

/** Takes the lease; gives when that was asked for, by the monotonic clock. */
async function enterWhenFree(
  { store, instance, isShared, log, signal }: InstanceLeaseOptions,
  monotonicMs: () => number,
): Promise<number> {
  let awaited: NameInUseError['holder'] | undefined;
  const giveUpAtMs = monotonicMs() + leaseMs + retryMs;
  for (;;) {
    const sentAtMs = monotonicMs();
    try {
      // Where there is only one, all others have ended, whatever they left written.
      await store.enter(instance, (others) => isShared && requireRoomFor(instance, others));
      return sentAtMs;
    } catch (error) {
      if (!(error instanceof NameInUseError)) throw error;
      const { holder } = error;
      const isHere = holder.machineId === instance.machineId && isSameProcess(holder.process);
      // A lease that is renewed is that of an instance that runs.
      const isAlive = awaited !== undefined && +holder.leaseUntil !== +awaited.leaseUntil;
      if (isHere || isAlive || monotonicMs() > giveUpAtMs) throw error;
      if (awaited === undefined) {
        log.warn(
          { instance: holder.name, host: holder.host, leaseUntil: holder.leaseUntil },
          'waiting until the lease of the former run of this instance has ended, which cannot be seen from here',
        );
      }
      awaited = holder;
    }
    await sleep(checkMs, undefined, { signal, ref: true });
  }
}

function addTo(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function callAll(listeners: ReadonlySet<() => void>, log: Logger): void {
  for (const listener of listeners) {
    try {
      listener();
    } catch (error) {
      log.error({ err: error }, 'instance lease listener failed');
    }
  }
}
