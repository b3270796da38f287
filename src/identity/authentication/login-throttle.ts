import { isIPv4, isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKeyedQueue } from '../../platform/concurrency/keyed-queue.ts';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import type { KeyvSpaces } from '../../platform/store/keyv.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import { createPendingAttempts } from './pending-attempts.ts';
import {
  type Change,
  type Counter,
  createThrottleCounters,
  keyOf,
  maxSubjectLength,
  type Place,
  type ThrottleRecord,
} from './throttle-counters.ts';

export type ThrottleRecords = Pick<
  KeyvSpace<ThrottleRecord>,
  'get' | 'delete' | 'update' | 'iterator'
>;

export interface LoginThrottleOptions {
  readonly records: ThrottleRecords;
  readonly lockout_attempts: number;
  readonly lockout_delay: number;
  readonly lockout_max_delay: number;
  /** Attempts under way at once, most of which wait in line. */
  readonly max_pending_logins: number;
  /** How long an attempt waits for its turn; 20 seconds by default. */
  readonly maxWaitMs?: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export interface LoginAttempt {
  /** Canonical user name, whether or not there is such a user. */
  readonly userName: string;
  readonly address: string;
  /** Id of the browser, when the same user has logged in with it before. */
  readonly knownBrowser?: string | undefined;
  /** Aborted when no one waits for the result any more: the attempt leaves the line. */
  readonly signal?: AbortSignal | undefined;
}

/** How a login attempt counts: `neutral` when the password was never compared. */
export type AttemptVerdict = 'success' | 'failure' | 'neutral';

export type ThrottledResult<Result> =
  | { readonly outcome: 'tried'; readonly result: Result }
  | Delayed;

/** An attempt that was not made. */
export interface Delayed {
  readonly outcome: 'delayed';
  readonly retryAfterSeconds: number;
  /** True: for no fault of its own, but because so many others log in. */
  readonly isCrowded?: true;
}

/**
 * Slows down guessing. Attempts and failures are counted in the store, so that all hubs of a database count
 * together and a restart does not forget them: per user name from one address, per address, and, up to a much higher number, per user name
 * from anywhere. A browser with which the user has logged in before has a count of its own and is held up
 * by none of these, so that no one locks another user out.
 */
export interface LoginThrottle {
  /**
   * Runs a login attempt unless it must wait. Attempts for one user name from one address run one after
   * another, and at all hubs together no more at once than may fail: of many at once, those behind the limit find
   * it reached, and those with right passwords wait their turn. `work` gets a signal that is aborted when
   * the attempt has waited too long: what it then rejects with means that it was not made; and the key of those
   * who are to share what there is with others: their network, or a known browser.
   */
  attempt<Result>(
    attempt: LoginAttempt,
    work: (patience: AbortSignal, sharingKey: string) => Promise<Result>,
    judge: (result: Result) => AttemptVerdict,
  ): Promise<ThrottledResult<Result>>;
  /** User names and addresses that must wait now. */
  list(): Promise<ThrottleRecord[]>;
  /** Forgets the failures of a user name or an address; false when there were none. */
  lift(subject: Pick<ThrottleRecord, 'kind' | 'subject'>): Promise<boolean>;
}

/**
 * Many users may share an address (a class room behind one router), so it takes this many times
 * more failures than a user name does before it must wait.
 */
const addressFactor = 10;
/** Guesses at one name from many addresses. */
const anywhereFactor = 100;
const maxQueueLength = 20;
/** Shorter than the time after which browsers and proxies give up. */
const defaultMaxWaitMs = 20_000;
/** Between two looks whether others, perhaps at another hub, have made room. */
const pollMs = { min: 20, max: 80 };
/** Those who are sent away together do not come back together. */
const retryAfterCrowdSeconds = { min: 2, max: 10 };

export function createLoginThrottle(options: LoginThrottleOptions): LoginThrottle {
  const { records, maxWaitMs = defaultMaxWaitMs, now = Date.now } = options;
  const counts = createThrottleCounters({ ...options, now });
  const attempts = createKeyedQueue({ maxQueueLength });
  const lines = createKeyedQueue({ maxQueueLength: Number.POSITIVE_INFINITY });
  const pending = createPendingAttempts(options.max_pending_logins);

  function countersOf({ userName, address, knownBrowser }: LoginAttempt): Counters {
    const limit = options.lockout_attempts;
    const user = { kind: 'user', subject: userName, limit } as const;
    if (knownBrowser !== undefined) return { own: { ...user, from: `browser ${knownBrowser}` } };
    return {
      own: { ...user, from: address },
      shared: [
        { ...user, limit: limit * anywhereFactor },
        { kind: 'address', subject: address, limit: limit * addressFactor },
      ],
    };
  }

  /** Takes a place at every counter as soon as there is one at all of them; resolves to how long to wait when one is locked. */
  async function enter(all: readonly Counter[], patience: AbortSignal): Promise<number> {
    for (;;) {
      patience.throwIfAborted();
      const places = await Promise.all(all.map(counts.take));
      if (places.every((place) => place === 'taken')) return 0;
      const taken = all.filter((_, index) => places[index] === 'taken');
      await Promise.all(taken.map((counter) => counts.giveBack(counter, 'unchanged')));
      const waitMs = Math.max(...places.map(waitMsOf));
      if (waitMs > 0) return waitMs;
      await sleep(randomBetween(pollMs), undefined, { signal: patience }).catch(() => undefined);
    }
  }

  async function leave({ own, shared = [] }: Counters, verdict: AttemptVerdict): Promise<void> {
    const isSuccess = verdict === 'success';
    const change = verdict === 'failure' ? 'failed' : 'unchanged';
    const ofOwn: Change = isSuccess ? { forgiven: Number.POSITIVE_INFINITY } : change;
    const forgiven = await counts.giveBack(own, ofOwn);
    // Those of the own name, and none of other names.
    const ofAddress: Change = isSuccess ? { forgiven } : change;
    await Promise.all(
      shared.map((counter) =>
        counts.giveBack(counter, counter.kind === 'address' ? ofAddress : change),
      ),
    );
  }

  async function tryLogin<Result>(
    counters: Counters,
    work: () => Promise<Result>,
    judge: (result: Result) => AttemptVerdict,
    patience: AbortSignal,
  ): Promise<ThrottledResult<Result>> {
    const { own, shared = [] } = counters;
    const enterAll = () => enter([own, ...shared], patience);
    const address = shared.find(({ kind }) => kind === 'address')?.subject;
    const waitMs = address === undefined ? await enterAll() : await lines.run(address, enterAll);
    if (waitMs !== undefined && waitMs > 0) return delayed(waitMs);
    let verdict: AttemptVerdict = 'neutral';
    try {
      const result = await work();
      verdict = judge(result);
      return { outcome: 'tried', result };
    } finally {
      await leave(counters, verdict);
    }
  }

  return {
    async attempt(attempt, work, judge) {
      const address = networkOf(attempt.address);
      const counters = countersOf({ ...attempt, address });
      const sharingKey = counters.shared === undefined ? keyOf(counters.own) : address;
      const displaced = pending.enter(sharingKey);
      if (displaced === undefined) return crowded();
      const deadline = AbortSignal.timeout(maxWaitMs);
      const given = attempt.signal === undefined ? [] : [attempt.signal];
      const patience = AbortSignal.any([deadline, displaced.signal, ...given]);
      try {
        const queued = await attempts.run(keyOf(counters.own), () =>
          tryLogin(counters, () => work(patience, sharingKey), judge, patience),
        );
        return queued === undefined ? delayed(1000) : queued;
      } catch (error) {
        if (patience.aborted && error === patience.reason) return crowded();
        throw error;
      } finally {
        pending.leave(sharingKey, displaced);
      }
    },

    async list() {
      const waiting: ThrottleRecord[] = [];
      for await (const [, record] of iterate(records)) {
        if (record.lockedUntil > now()) waiting.push(record);
      }
      return waiting.sort((left, right) => right.lockedUntil - left.lockedUntil);
    },

    async lift({ kind, subject }) {
      const wanted = kind === 'address' ? networkOf(subject) : subject.slice(0, maxSubjectLength);
      let isLifted = false;
      for await (const [, record] of iterate(records)) {
        if (record.kind !== kind || record.subject !== wanted || record.failures === 0) continue;
        isLifted = (await records.delete(keyOf(record))) || isLifted;
      }
      return isLifted;
    },
  };
}

/** What an attempt counts for: its own counter, and those that it shares with others. */
interface Counters {
  readonly own: Counter;
  readonly shared?: readonly Counter[];
}

function delayed(waitMs: number): Delayed {
  return { outcome: 'delayed', retryAfterSeconds: Math.ceil(waitMs / 1000) };
}

function crowded(): Delayed {
  const retryAfterSeconds = randomBetween(retryAfterCrowdSeconds);
  return { outcome: 'delayed', retryAfterSeconds, isCrowded: true };
}

const waitMsOf = (place: Place) => (typeof place === 'string' ? 0 : place.waitMs);

function randomBetween({ min, max }: { readonly min: number; readonly max: number }): number {
  return min + Math.floor(Math.random() * (max - min + 1));
}

async function* iterate(
  records: Pick<ThrottleRecords, 'iterator'>,
): AsyncGenerator<readonly [string, ThrottleRecord]> {
  if (records.iterator === undefined) return;
  for await (const entry of records.iterator(undefined)) {
    yield entry as readonly [string, ThrottleRecord];
  }
}

/**
 * Names the network that counts as one address: the /64 of an IPv6 address, because its owner may
 * take any address in it, and IPv4 as it is, also when it comes mapped into IPv6.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  const [bare = ''] = address.split('%');
  if (!isIPv6(bare)) return address.slice(0, maxSubjectLength);
  const [head = '', tail] = bare.toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const rightLength = right.length + (tail?.includes('.') === true ? 1 : 0);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - rightLength) }, () => '0');
  const groups = tail === undefined ? left : [...left, ...zeros, ...right];
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** What counts failed attempts, for each step of a login. */
export function createLoginThrottles(
  config: AuthenticatorConfig,
  { keyv, now }: { readonly keyv: Pick<KeyvSpaces, 'space'>; readonly now: () => number },
) {
  const create = (space: string) =>
    createLoginThrottle({ ...config, records: keyv.space<ThrottleRecord>(space), now });
  return { login: create('login-throttle'), secondFactor: create('second-factor-throttle') };
}

/** Who has to wait after failed logins, whichever step of the login it was. */
export interface Lockouts {
  /** The longest wait first. */
  list(): Promise<ThrottleRecord[]>;
  /** Ends a wait and forgets the failures; false when there were none. */
  lift(subject: Pick<ThrottleRecord, 'kind' | 'subject'>): Promise<boolean>;
}

export function createLockouts(
  throttles: readonly Pick<LoginThrottle, 'list' | 'lift'>[],
  audit: Pick<AuditTrail, 'recordAlone'>,
): Lockouts {
  return {
    async list() {
      const records = (await Promise.all(throttles.map((throttle) => throttle.list()))).flat();
      const bySubject = Map.groupBy(records, ({ kind, subject }) => `${kind}:${subject}`);
      return [...bySubject.values()]
        .flatMap((same) => {
          const [longest] = same.sort((left, right) => right.lockedUntil - left.lockedUntil);
          if (longest === undefined) return [];
          return [{ ...longest, failures: same.reduce((sum, each) => sum + each.failures, 0) }];
        })
        .sort((left, right) => right.lockedUntil - left.lockedUntil);
    },

    async lift(subject) {
      const lifted = await Promise.all(throttles.map((throttle) => throttle.lift(subject)));
      if (!lifted.includes(true)) return false;
      const { kind, subject: name } = subject;
      const target = { kind: kind === 'user' ? 'user' : 'lockout', name } as const;
      await audit.recordAlone({ action: 'lockout.lift', target });
      return true;
    },
  };
}
