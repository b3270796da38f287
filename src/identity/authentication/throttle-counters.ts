import { hashSecret } from '../../platform/crypto/hash.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';

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
  /** Attempts that have not ended, at whatever hub; `since` is when the last of them began. */
  readonly underWay?: { readonly count: number; readonly since: number };
}

export type Subject = Pick<ThrottleRecord, 'kind' | 'subject' | 'from'>;

export interface Counter extends Subject {
  /** Failures after which the next attempt must wait. */
  readonly limit: number;
}

/** What came of a place that was asked for: `waitMs` while locked, `full` while attempts under way may yet reach the limit. */
export type Place = 'taken' | 'full' | { readonly waitMs: number };

/** What becomes of the failures when an attempt ends: one more, all or some forgiven, or as they were. */
export type Change = 'failed' | 'unchanged' | { readonly forgiven: number };

/**
 * Counts attempts in the store before they are made, so that several hubs together make no more at once than may fail.
 */
export interface ThrottleCounters {
  take(counter: Counter): Promise<Place>;
  /** Gives a place back; resolves to the failures there were before. */
  giveBack(counter: Counter, change: Change): Promise<number>;
}

export const maxSubjectLength = 255;
/** A hub that ended in the middle of an attempt keeps a place no longer than this. */
const maxAttemptMs = 60_000;

export function createThrottleCounters(options: {
  readonly records: Pick<KeyvSpace<ThrottleRecord>, 'update'>;
  readonly lockout_delay: number;
  readonly lockout_max_delay: number;
  readonly now: () => number;
}): ThrottleCounters {
  const { records, now } = options;
  const maxDelayMs = options.lockout_max_delay * 1000;
  const forgetAfterMs = Math.max(2 * maxDelayMs, 60_000);

  function delayAfter(failures: number, limit: number): number {
    if (failures < limit) return 0;
    return Math.min(options.lockout_delay * 1000 * 2 ** Math.min(failures - limit, 30), maxDelayMs);
  }

  const forgottenAt = ({ lastFailureAt, lockedUntil }: ThrottleRecord) =>
    Math.max(lastFailureAt, lockedUntil) + forgetAfterMs;

  /** What still counts. A failure in the future is one from before the clock was set back, and is now. */
  function stillCounts(
    { kind, subject, from }: Counter,
    former: ThrottleRecord | undefined,
  ): ThrottleRecord {
    const { underWay, ...counted }: Partial<ThrottleRecord> & typeof none = former ?? none;
    const ahead = Math.max(0, counted.lastFailureAt - now());
    const failed = {
      failures: counted.failures,
      lastFailureAt: counted.lastFailureAt - ahead,
      lockedUntil: Math.max(0, counted.lockedUntil - ahead),
    };
    const subjectOf = {
      kind,
      subject: subject.slice(0, maxSubjectLength),
      ...(from !== undefined && { from }),
    };
    const record = { ...subjectOf, ...failed };
    const isUnderWay = underWay !== undefined && Math.abs(now() - underWay.since) < maxAttemptMs;
    return {
      ...record,
      ...(forgottenAt(record) <= now() && none),
      ...(isUnderWay && { underWay }),
    };
  }

  function saved(record: ThrottleRecord) {
    if (record.failures === 0 && record.underWay === undefined) return 'delete';
    const endsAt = Math.max(
      record.failures === 0 ? 0 : forgottenAt(record),
      record.underWay === undefined ? 0 : now() + maxAttemptMs,
    );
    return { value: record, lifetimeMs: endsAt - now() };
  }

  function changed(record: ThrottleRecord, change: Change, limit: number): ThrottleRecord {
    if (change === 'unchanged') return record;
    if (change !== 'failed') {
      const failures = Math.max(0, record.failures - change.forgiven);
      return { ...record, ...(failures === 0 ? none : { failures }) };
    }
    const failures = record.failures + 1;
    const delayMs = delayAfter(failures, limit);
    const lockedUntil = delayMs === 0 ? 0 : now() + delayMs;
    return { ...record, failures, lastFailureAt: now(), lockedUntil };
  }

  return {
    async take(counter) {
      let place: Place = 'taken';
      await records.update(keyOf(counter), (former) => {
        const record = stillCounts(counter, former);
        const waitMs = record.lockedUntil - now();
        const count = record.underWay?.count ?? 0;
        if (waitMs > 0) place = { waitMs };
        else place = count > 0 && record.failures + count >= counter.limit ? 'full' : 'taken';
        if (place === 'taken')
          return saved({ ...record, underWay: { count: count + 1, since: now() } });
        return record.lastFailureAt === former?.lastFailureAt ? undefined : saved(record);
      });
      return place;
    },

    async giveBack(counter, change) {
      let failures = 0;
      await records.update(keyOf(counter), (former) => {
        const { underWay, ...record } = stillCounts(counter, former);
        failures = record.failures;
        const count = (underWay?.count ?? 0) - 1;
        return saved({
          ...changed(record, change, counter.limit),
          ...(underWay !== undefined && count > 0 && { underWay: { ...underWay, count } }),
        });
      });
      return failures;
    },
  };
}

const none = { failures: 0, lastFailureAt: 0, lockedUntil: 0 };

/** A hash of the beginning, because a name may be as long as a request body and hold any character. */
export function keyOf({ kind, subject, from }: Subject): string {
  const text = JSON.stringify([subject.slice(0, maxSubjectLength), from ?? null]);
  return `${kind}:${hashSecret(text)}`;
}
