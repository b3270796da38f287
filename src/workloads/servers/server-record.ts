import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import { HubError, isStorageUnavailable } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { SpawnedServer, SpawnerState } from '../../plugin/host/spawner.ts';
import type { Server, ServerFailure } from './server.ts';
import type { ClaimOutcome, LifecycleLimits, ServerOwnership } from './server-ownership-store.ts';
import type { StartTime } from './server-row-store.ts';
import type { LaunchPlan } from './server-start.ts';
import type { ServerStore } from './server-store.ts';
import type { UnitEvents } from './unit-events.ts';

/** What the database says of a server of this instance; of another one's it changes nothing. */
export interface ServerRecord {
  /** Since when the server is this instance's, by the monotonic clock; undefined before. */
  ownedSinceMs(): number | undefined;
  /** Whether the server is gone, which the database could not be told. */
  isBehind(): boolean;
  /**
   * Takes the server for a start: another instance may want to start it too. Throws `conflict` when one
   * does, `too_many_requests` over a limit, and `unavailable` without a lease.
   */
  claim(plan: Pick<LaunchPlan, 'userOptions'>): Promise<void>;
  /** The server is this instance's already. */
  own(): void;
  /**
   * Whether the server is still this instance's. While the database cannot tell, that is waited for until
   * `isOver`, and then taken for granted. Never throws.
   */
  isOurs(isOver: () => boolean): Promise<boolean>;
  /** Whether no other instance can have taken it over since it became this one's. */
  isSurelyOurs(): boolean;
  keepState(spawnerState: SpawnerState): Promise<void>;
  keepQueued(isQueued: boolean): Promise<void>;
  launched(server: SpawnedServer): Promise<void>;
  /** Throws `conflict` when the server was stopped, renamed, removed or taken over meanwhile. */
  running(startTime?: StartTime): Promise<void>;
  /** Never throws. */
  stopping(): Promise<void>;
  /** Never throws: the server is gone, whatever the database says, which may be told of it later. */
  stopped(failure: ServerFailure | null): Promise<void>;
  /** Tells of an end that the database could not be told of. Never throws. */
  catchUp(): Promise<void>;
}

const ownershipRetryMs = 500;
const throttleRetrySeconds = { min: 5, spread: 10 };

export interface ServerRecordDeps {
  readonly store: ServerStore;
  readonly ownership: ServerOwnership;
  readonly instance: Pick<InstanceLease, 'isHeldSince'>;
  readonly limits: LifecycleLimits;
  readonly log: Logger;
}

export function createServerRecord(
  server: Server,
  deps: ServerRecordDeps & { readonly events: Pick<UnitEvents, 'onGone' | 'endRun'> },
  log: Logger,
): ServerRecord {
  const { store, ownership, instance, limits, events } = deps;
  const { id } = server;
  const { instanceId: me } = ownership;
  let ownedSinceMs: number | undefined;
  /** When it was asked for. */
  let claimedAtMs = Number.NEGATIVE_INFINITY;
  /** An end that the database could not be told of: it is told later, or before the next start. */
  let unreported: { readonly failure: ServerFailure | null } | undefined;
  /** Whether what belongs to the run that ended is cleaned up. */
  let isCleanedUp = false;
  /** Whether the run that ended was this instance's to its end, once that is known. */
  let wasOurs: boolean | undefined;
  let endedAtMs: number | undefined;

  function begin(): void {
    isCleanedUp = false;
    wasOurs = undefined;
    endedAtMs = undefined;
  }

  async function cleanUp(): Promise<void> {
    if (isCleanedUp) return;
    wasOurs ??= await ownership.owns(id);
    // What another instance runs by now has a token of its own.
    if (wasOurs) await events.onGone(server);
    isCleanedUp = true;
  }

  async function stopped(failure: ServerFailure | null): Promise<void> {
    endedAtMs ??= performance.now();
    const wasUnreported = unreported !== undefined;
    unreported = undefined;
    const isLate = (error: unknown, message: string): void => {
      unreported = { failure };
      // Said once; it is tried again every few seconds.
      if (!wasUnreported) log.error({ err: error }, message);
    };
    try {
      await cleanUp();
    } catch (error) {
      isCleanedUp = !isStorageUnavailable(error);
      if (isCleanedUp) log.error({ err: error }, 'could not clean up after a server');
      else isLate(error, 'could not clean up after a server yet');
    }
    try {
      const nothing = { url: null, spawnerState: {}, startedAt: null };
      // Of the last failure is told until a start goes well.
      const change = { ...(failure && { failure }), ...nothing };
      await events.endRun(server, endedAtMs, (on) => store.moveTo(id, 'stopped', change, me, on));
      if (wasUnreported && unreported === undefined) log.info('server stop recorded late');
    } catch (error) {
      isLate(error, 'could not record yet that a server is stopped');
    }
  }

  return {
    ownedSinceMs: () => ownedSinceMs,
    isBehind: () => unreported !== undefined,

    async claim({ userOptions }) {
      if (unreported !== undefined) await stopped(null);
      begin();
      ownedSinceMs = undefined;
      claimedAtMs = performance.now();
      const outcome = await ownership.claim(server, { userOptions }, limits);
      if (outcome !== 'claimed') throw refusal(outcome);
      ownedSinceMs = performance.now();
    },

    own() {
      begin();
      ownedSinceMs = claimedAtMs = performance.now();
    },

    async isOurs(isOver) {
      while (!isOver()) {
        try {
          return await ownership.owns(id);
        } catch (error) {
          if (!isStorageUnavailable(error)) return true;
          await sleep(ownershipRetryMs, undefined, { ref: false });
        }
      }
      return true;
    },

    isSurelyOurs: () => instance.isHeldSince(claimedAtMs),
    keepState: (spawnerState) => store.update(id, { spawnerState }, me),
    keepQueued: (isQueued) => store.update(id, { isQueued }, me),

    launched: ({ url, state: spawnerState }) =>
      store.update(id, { url, spawnerState, startedAt: new Date(), isQueued: false }, me),

    async running(startTime) {
      const change = { failure: null, ...(startTime !== undefined && { startTime }) };
      if (!(await store.moveTo(id, 'running', change, me))) {
        throw new HubError('conflict', text`The server was removed or stopped while it started.`);
      }
    },

    async stopping() {
      try {
        await store.moveTo(id, 'stopping', {}, me);
      } catch (error) {
        log.error({ err: error }, 'could not record that a server is stopping');
      }
    },

    stopped,

    async catchUp() {
      if (unreported !== undefined) await stopped(unreported.failure);
    },
  };
}

function refusal(outcome: Exclude<ClaimOutcome, 'claimed'>): HubError {
  const retryAfterSeconds = throttleRetrySeconds.min + Math.random() * throttleRetrySeconds.spread;
  switch (outcome) {
    case 'taken':
      return new HubError('conflict', text`The server is being started or stopped elsewhere.`);
    case 'no_lease':
      return new HubError('unavailable', text`The hub cannot start servers at the moment.`, {
        hint: text`Try again in a few seconds.`,
        retryAfterSeconds,
      });
    case 'too_many_active':
      return new HubError('too_many_requests', text`As many servers run as this hub allows.`, {
        hint: text`Try again when another server has stopped.`,
        retryAfterSeconds: retryAfterSeconds * 4,
      });
    case 'too_many_starting':
      return new HubError('too_many_requests', text`Many servers are starting at this moment.`, {
        hint: text`Try again in a few seconds.`,
        retryAfterSeconds,
      });
  }
}
