import { isIPv4, isIPv6 } from 'node:net';
import type { Keyv } from 'keyv';
import { hashSecret } from '../crypto/hash.ts';
import { createKeyedQueue } from './keyed-queue.ts';

/** Failed logins counted against one user name or one address. */
export interface ThrottleRecord {
  readonly kind: 'user' | 'address';
  /** The canonical user name, or the address; an IPv6 address as its /64 network. */
  readonly subject: string;
  readonly failures: number;
  readonly lastFailureAt: number;
  /** Milliseconds since 1970; no login is tried before. */
  readonly lockedUntil: number;
}

export interface LoginThrottleOptions {
  readonly records: Keyv<ThrottleRecord>;
  readonly lockout_attempts: number;
  readonly lockout_delay: number;
  readonly lockout_max_delay: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export interface LoginAttempt {
  /** Canonical user name, whether or not there is such a user. */
  readonly userName: string;
  readonly address: string;
}

/** How a login attempt counts: `neutral` when the password was never compared. */
export type AttemptVerdict = 'success' | 'failure' | 'neutral';

export type ThrottledResult<Result> =
  | { readonly outcome: 'tried'; readonly result: Result }
  | { readonly outcome: 'delayed'; readonly retryAfterSeconds: number };

/**
 * Slows down guessing. Failures are counted per user name and per address, in the store, so that
 * several processes and a restart do not forget them.
 */
export interface LoginThrottle {
  /**
   * Runs a login attempt unless its user name or address must wait. Attempts for one user name run
   * one after another: of many at once, those behind the limit find it reached.
   */
  attempt<Result>(
    attempt: LoginAttempt,
    work: () => Promise<Result>,
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
const longestSubject = 255;
const longestQueue = 20;

export function createLoginThrottle(options: LoginThrottleOptions): LoginThrottle {
  const { records, now = Date.now } = options;
  const maxDelayMs = options.lockout_max_delay * 1000;
  const forgetAfterMs = Math.max(2 * maxDelayMs, 60_000);
  const users = createKeyedQueue({ longestQueue });
  const bookkeeping = createKeyedQueue({ longestQueue: Number.POSITIVE_INFINITY });
  /** Attempts under way per address; each counts as a failure until it is known to be none. */
  const underWay = new Map<string, number>();

  function delayAfter(failures: number, attempts: number): number {
    if (failures < attempts) return 0;
    return Math.min(
      options.lockout_delay * 1000 * 2 ** Math.min(failures - attempts, 30),
      maxDelayMs,
    );
  }

  async function waitFor(kind: ThrottleRecord['kind'], subject: string): Promise<number> {
    const record = await records.get(keyOf(kind, subject));
    return Math.max(0, (record?.lockedUntil ?? 0) - now());
  }

  async function addFailure(kind: ThrottleRecord['kind'], subject: string): Promise<void> {
    const key = keyOf(kind, subject);
    await bookkeeping.run(key, async () => {
      const failures = ((await records.get(key))?.failures ?? 0) + 1;
      const delayMs = delayAfter(failures, attemptsOf(kind));
      const record: ThrottleRecord = {
        kind,
        subject: subject.slice(0, longestSubject),
        failures,
        lastFailureAt: now(),
        lockedUntil: delayMs === 0 ? 0 : now() + delayMs,
      };
      await records.set(key, record, delayMs + forgetAfterMs);
    });
  }

  function attemptsOf(kind: ThrottleRecord['kind']): number {
    return options.lockout_attempts * (kind === 'user' ? 1 : addressFactor);
  }

  /** Takes one failure back only: a user with an account must not clear an address by logging in. */
  async function forgiveAddress(subject: string): Promise<void> {
    const key = keyOf('address', subject);
    await bookkeeping.run(key, async () => {
      const record = await records.get(key);
      if (record === undefined) return;
      if (record.failures <= 1) await records.delete(key);
      else await records.set(key, { ...record, failures: record.failures - 1 }, forgetAfterMs);
    });
  }

  /** Whether so many attempts are under way that all failing would lock the address. */
  async function isCrowded(address: string): Promise<boolean> {
    const failures = (await records.get(keyOf('address', address)))?.failures ?? 0;
    const limit = Math.max(attemptsOf('address') - failures, 1);
    return (underWay.get(address) ?? 0) > limit;
  }

  async function tryLogin<Result>(
    { userName, address }: LoginAttempt,
    work: () => Promise<Result>,
    judge: (result: Result) => AttemptVerdict,
  ): Promise<ThrottledResult<Result>> {
    const waits = await Promise.all([waitFor('user', userName), waitFor('address', address)]);
    const waitMs = Math.max(...waits);
    if (waitMs > 0) return delayed(waitMs);
    if (await isCrowded(address)) return delayed(1000);
    const result = await work();
    const verdict = judge(result);
    if (verdict === 'failure') {
      await Promise.all([addFailure('user', userName), addFailure('address', address)]);
    } else if (verdict === 'success') {
      await Promise.all([records.delete(keyOf('user', userName)), forgiveAddress(address)]);
    }
    return { outcome: 'tried', result };
  }

  return {
    async attempt(attempt, work, judge) {
      const address = networkOf(attempt.address);
      underWay.set(address, (underWay.get(address) ?? 0) + 1);
      try {
        const queued = await users.run(keyOf('user', attempt.userName), () =>
          tryLogin({ userName: attempt.userName, address }, work, judge),
        );
        return queued === undefined ? delayed(1000) : queued;
      } finally {
        const rest = (underWay.get(address) ?? 1) - 1;
        if (rest === 0) underWay.delete(address);
        else underWay.set(address, rest);
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
      return await records.delete(keyOf(kind, kind === 'address' ? networkOf(subject) : subject));
    },
  };
}

function delayed(waitMs: number): { outcome: 'delayed'; retryAfterSeconds: number } {
  return { outcome: 'delayed', retryAfterSeconds: Math.ceil(waitMs / 1000) };
}

/** A hash of the beginning, because a name may be as long as a request body and hold any character. */
function keyOf(kind: ThrottleRecord['kind'], subject: string): string {
  return `${kind}:${hashSecret(subject.slice(0, longestSubject))}`;
}

async function* iterate(
  records: Keyv<ThrottleRecord>,
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
  if (!isIPv6(bare)) return address.slice(0, longestSubject);
  const [head = '', tail] = bare.toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const rightLength = right.length + (tail?.includes('.') === true ? 1 : 0);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - rightLength) }, () => '0');
  const groups = tail === undefined ? left : [...left, ...zeros, ...right];
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
