import { type AnswerCache, createAnswerCache } from '../concurrency/answer-cache.ts';
import { concernsRights, noticesId } from './change-subject.ts';
import type { HubDatabase } from './database.ts';

/** Counts the changes of the database, for caches of what depends on it. */
export interface ChangeWatch extends Disposable {
  /** Grows with each change that may have taken any right from anyone. */
  epoch(): number;
  /** Grows with each user added. */
  userCount(): number;
  /** Grows with each login and token that ended, and with each user of whom something else is known. */
  revocationCount(): number;
  /** Whether a login or token ended lately: at least within twice the longest time a cache remembers. */
  isRevoked(id: string | undefined): boolean;
  /** Whether what is known by this id has changed at `atMs` by the clock of caches, or since. */
  hasChangedSince(id: string, atMs: number): boolean;
  /**
   * The clock of caches: it stands still while the database cannot be reached, since no one could change anything in
   * the way that time makes answers wrong.
   */
  timeMs(): number;
  /** The time of day, by which answers end that have an end of their own. */
  now(): number;
  /** Whether it has stood still for so long that nothing remembered may be used. */
  isLost(): boolean;
}

/** Which changes make an answer void, beside those that may concern anyone. */
export interface InvalidatedBy<Value> {
  /** The logins and tokens whose end does, by id. */
  readonly endOf?: (value: Value) => readonly (string | undefined)[];
  /** What makes it void by being changed, such as the user whose info it is, by id. */
  readonly changeOf?: (value: Value) => string;
  /** Whether a new user does, as where an answer is that there is no such user. */
  readonly newUsers?: boolean;
}

export interface ChangeAwareCacheOptions<Value> {
  readonly changes: ChangeWatch;
  readonly max: number;
  /** See `AnswerCacheOptions`. */
  readonly maxMisses?: number;
  /** At most `maxTtlMs`: how wrong an answer can be where news of a change is lost. */
  readonly ttlMs?: number;
  readonly missTtlMs?: number;
  readonly expiresAtMs?: (value: Value) => number | undefined;
  readonly invalidatedBy?: InvalidatedBy<Value>;
}

/** Where changes are heard of. */
export type ChangeSource = Pick<HubDatabase, 'onChange' | 'changeFeed' | 'now'>;

export const maxTtlMs = 60_000;
/** Logins and tokens that may end within twice that time before everything is forgotten at once. */
const maxRevocations = 50_000;

/** Watches the changes of a database, in this process and others. */
export function watchChanges(database: ChangeSource): ChangeWatch {
  const { changeFeed } = database;
  let epoch = 0;
  let userCount = 0;
  let revocationCount = 0;
  const revoked = createRevocationSet({
    forMs: 2 * maxTtlMs,
    max: maxRevocations,
    monotonicMs: changeFeed.knownAtMs,
  });

  /** Notes what ended; false when that is more than can be kept. */
  function revoke(ids: readonly string[]): boolean {
    revocationCount += 1;
    return ids.map((id) => revoked.add(id)).every(Boolean);
  }

  const stopListening = database.onChange((subject) => {
    let isKept = true;
    if (concernsRights(subject)) isKept = false;
    else if (subject.kind === 'user_added') userCount += 1;
    else if (subject.kind === 'session_ended') isKept = revoke([subject.sessionId]);
    else if (subject.kind === 'tokens_revoked') isKept = revoke(subject.tokenIds);
    else if (subject.kind === 'user_info_changed') isKept = revoke([subject.userId]);
    else if (subject.kind === 'notices_changed') isKept = revoke([noticesId]);
    if (!isKept) epoch += 1;
  });
  return {
    epoch: () => epoch,
    userCount: () => userCount,
    revocationCount: () => revocationCount,
    isRevoked: (id) => revoked.has(id),
    hasChangedSince: (id, atMs) => (revoked.addedAtMs(id) ?? Number.NEGATIVE_INFINITY) >= atMs,
    timeMs: changeFeed.knownAtMs,
    now: database.now,
    isLost: changeFeed.isLost,
    [Symbol.dispose]: stopListening,
  };
}

/**
 * A cache of answers that depend on users, roles, groups, logins or tokens. No answer is given after
 * a change that was begun before it, whether it was remembered already or still being worked out.
 */
export function createChangeAwareCache<Value extends {}, Miss extends undefined = undefined>({
  changes,
  ttlMs = maxTtlMs,
  missTtlMs = ttlMs,
  invalidatedBy = {},
  ...options
}: ChangeAwareCacheOptions<Value>): AnswerCache<Value, Miss> {
  if (ttlMs > maxTtlMs) throw new RangeError('the cache would outlast what it knows of changes');
  const { endOf, changeOf, newUsers = false } = invalidatedBy;
  return createAnswerCache({
    ...options,
    ttlMs: () => (changes.isLost() ? 0 : ttlMs),
    missTtlMs: () => (changes.isLost() ? 0 : missTtlMs),
    monotonicMs: changes.timeMs,
    now: changes.now,
    voiding: {
      // Both only grow, so their sum changes with each.
      epoch: newUsers ? () => changes.epoch() + changes.userCount() : changes.epoch,
      revocationCount:
        endOf === undefined && changeOf === undefined ? () => 0 : changes.revocationCount,
      isRevoked: (value, atMs) =>
        endOf?.(value).some(changes.isRevoked) === true ||
        (changeOf !== undefined && changes.hasChangedSince(changeOf(value), atMs)),
    },
  });
}

/** Ids of what ended or changed lately, kept as long as anything remembered from before may still be asked for. */
export interface RevocationSet {
  /** Adds an id; false when there are too many to keep, and everything must count as ended. */
  add(id: string): boolean;
  has(id: string | undefined): boolean;
  /** When it was added last, by `monotonicMs`. */
  addedAtMs(id: string): number | undefined;
}

/**
 * An id stays for at least `forMs`, and at most twice as long: two sets take turns,
 * so that nothing is done for each id and no timer runs.
 */
export function createRevocationSet(options: {
  readonly forMs: number;
  readonly max: number;
  readonly monotonicMs?: () => number;
}): RevocationSet {
  const { forMs, max, monotonicMs = () => performance.now() } = options;
  let current = new Map<string, number>();
  let former = new Map<string, number>();
  let turnedAtMs = monotonicMs();

  return {
    add(id) {
      if (monotonicMs() - turnedAtMs >= forMs) {
        former = current;
        current = new Map();
        turnedAtMs = monotonicMs();
      }
      if (current.size >= max) {
        current = new Map();
        former = new Map();
        return false;
      }
      current.set(id, monotonicMs());
      return true;
    },
    has: (id) => id !== undefined && (current.has(id) || former.has(id)),
    addedAtMs: (id) => current.get(id) ?? former.get(id),
  };
}
