import { isIPv4, isIPv6 } from 'node:net';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import type { KeyvSpaces } from '../../platform/store/keyv.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import { createAddressLines } from './address-lines.ts';
import { createKeyedQueue } from './keyed-queue.ts';

/** Failed logins counted against one user name or one address. */
export interface ThrottleRecord {
  readonly kind: 'user' | 'address';
  /** The canonical user name, or the address; an IPv6 address as its /64 network. */
  readonly subject: string;
  /** Of a user name: from where it failed. Left out: from anywhere. */
  readonly from?: string;
  readonly failures: number;
  readonly lastFailureAt: number;
  /** Milliseconds since 1970; no login is tried before. */
  readonly lockedUntil: number;
}

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
 * Slows down guessing. Failures are counted in the store, so that several processes and a restart do not
 * forget them: per user name from one address, per address, and, up to a much higher number, per user name
 * from anywhere. A browser with which the user has logged in before has a count of its own and is held up
 * by none of these, so that no one locks another user out.
 */
export interface LoginThrottle {
  /**
   * Runs a login attempt unless it must wait. Attempts for one user name from one address run one after
   * another, and of an address no more at once than may fail: of many at once, those behind the limit find
   * it reached, and those with right passwords wait their turn. `work` gets a signal that is aborted when
   * the attempt has waited too long: what it then rejects with means that it was not made.
   */
  attempt<Result>(
    attempt: LoginAttempt,
    work: (patience: AbortSignal) => Promise<Result>,
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
const maxSubjectLength = 255;
const maxQueueLength = 20;
/** Shorter than the time after which browsers and proxies give up. */
const defaultMaxWaitMs = 20_000;
/** Those who are sent away together do not come back together. */
const retryAfterCrowdSeconds = { min: 2, max: 10 };

export function createLoginThrottle(options: LoginThrottleOptions): LoginThrottle {
  const { records, maxWaitMs = defaultMaxWaitMs, now = Date.now } = options;
  const maxDelayMs = options.lockout_max_delay * 1000;
  const forgetAfterMs = Math.max(2 * maxDelayMs, 60_000);
  const attempts = createKeyedQueue({ maxQueueLength });
  const lines = createAddressLines();
  let pending = 0;

  function delayAfter(failures: number, limit: number): number {
    if (failures < limit) return 0;
    return Math.min(options.lockout_delay * 1000 * 2 ** Math.min(failures - limit, 30), maxDelayMs);
  }

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

  async function waitFor(counter: Counter): Promise<number> {
    const key = keyOf(counter);
    let record = await records.get(key);
    if (record !== undefined && record.lastFailureAt > now()) record = await countFromNow(key);
    return Math.max(0, (record?.lockedUntil ?? 0) - now());
  }

  /** Of a failure in the future, which is one from before the clock was set back. */
  async function countFromNow(key: string): Promise<ThrottleRecord | undefined> {
    return records.update(key, (former) => {
      if (former === undefined || former.lastFailureAt <= now()) return undefined;
      const delayMs = Math.max(0, former.lockedUntil - former.lastFailureAt);
      const lockedUntil = delayMs === 0 ? 0 : now() + delayMs;
      const value = { ...former, lastFailureAt: now(), lockedUntil };
      return { value, lifetimeMs: delayMs + forgetAfterMs };
    });
  }

  async function addFailure({ limit, ...counter }: Counter): Promise<void> {
    await records.update(keyOf(counter), (former) => {
      const failures = (former?.failures ?? 0) + 1;
      const delayMs = delayAfter(failures, limit);
      const value: ThrottleRecord = {
        ...counter,
        subject: counter.subject.slice(0, maxSubjectLength),
        failures,
        lastFailureAt: now(),
        lockedUntil: delayMs === 0 ? 0 : now() + delayMs,
      };
      return { value, lifetimeMs: delayMs + forgetAfterMs };
    });
  }

  /** Takes the failures of the own name back from the address, and none of other names. */
  async function forgive({ own, shared = [] }: Counters): Promise<void> {
    let forgiven = 0;
    await records.update(keyOf(own), (record) => {
      forgiven = record?.failures ?? 0;
      return record && 'delete';
    });
    for (const counter of forgiven === 0 ? [] : shared) {
      if (counter.kind !== 'address') continue;
      await records.update(keyOf(counter), (record) => {
        if (record === undefined) return undefined;
        const failures = record.failures - forgiven;
        return failures <= 0
          ? 'delete'
          : { value: { ...record, failures }, lifetimeMs: forgetAfterMs };
      });
    }
  }

  /** How many attempts of an address may be under way: were all to fail, it would be locked. */
  async function roomOf(address: string): Promise<number> {
    const failures =
      (await records.get(keyOf({ kind: 'address', subject: address })))?.failures ?? 0;
    return Math.max(options.lockout_attempts * addressFactor - failures, 1);
  }

  async function tryLogin<Result>(
    counters: Counters,
    work: () => Promise<Result>,
    judge: (result: Result) => AttemptVerdict,
  ): Promise<ThrottledResult<Result>> {
    const all = [counters.own, ...(counters.shared ?? [])];
    const waitMs = Math.max(...(await Promise.all(all.map(waitFor))));
    if (waitMs > 0) return delayed(waitMs);
    const result = await work();
    const verdict = judge(result);
    if (verdict === 'failure') await Promise.all(all.map(addFailure));
    else if (verdict === 'success') await forgive(counters);
    return { outcome: 'tried', result };
  }

  return {
    async attempt(attempt, work, judge) {
      if (pending >= options.max_pending_logins) return crowded();
      const address = networkOf(attempt.address);
      const counters = countersOf({ ...attempt, address });
      const deadline = AbortSignal.timeout(maxWaitMs);
      const patience = AbortSignal.any([deadline, ...(attempt.signal ? [attempt.signal] : [])]);
      const turn = { limitOf: () => roomOf(address), signal: patience };
      const tryNow = () => tryLogin(counters, () => work(patience), judge);
      pending += 1;
      try {
        const queued = await attempts.run(keyOf(counters.own), () =>
          counters.shared === undefined ? tryNow() : lines.run(address, turn, tryNow),
        );
        return queued === undefined ? delayed(1000) : queued;
      } catch (error) {
        if (patience.aborted && error === patience.reason) return crowded();
        throw error;
      } finally {
        pending -= 1;
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
        if (record.kind !== kind || record.subject !== wanted) continue;
        isLifted = (await records.delete(keyOf(record))) || isLifted;
      }
      return isLifted;
    },
  };
}

type Subject = Pick<ThrottleRecord, 'kind' | 'subject' | 'from'>;

interface Counter extends Subject {
  /** Failures after which the next attempt must wait. */
  readonly limit: number;
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
  const { min, max } = retryAfterCrowdSeconds;
  const retryAfterSeconds = min + Math.floor(Math.random() * (max - min + 1));
  return { outcome: 'delayed', retryAfterSeconds, isCrowded: true };
}

/** A hash of the beginning, because a name may be as long as a request body and hold any character. */
function keyOf({ kind, subject, from }: Subject): string {
  const text = JSON.stringify([subject.slice(0, maxSubjectLength), from ?? null]);
  return `${kind}:${hashSecret(text)}`;
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
