import { LRUCache } from 'lru-cache';
import { withinTime } from './time-limit.ts';

/** What makes remembered answers void before their time. */
export interface Voiding<Value> {
  /** Answers that were begun in an earlier epoch are void. */
  epoch(): number;
  /** How often something ended that single answers depend on. */
  revocationCount(): number;
  /** Whether such an end has made this answer void, which was begun at `atMs` by the clock of the cache. */
  isRevoked(value: Value, atMs: number): boolean;
}

/** When an answer was begun to be worked out. */
export interface Beginning {
  readonly epoch: number;
  readonly atMs: number;
}

/**
 * Remembers answers for a while, and asks once for callers that come together. `Miss` is undefined where a
 * key may have no answer, and never where each has one.
 */
export interface AnswerCache<Value, Miss extends undefined = undefined> {
  /** What is remembered and still holds. */
  get(key: string): Value | undefined;
  /**
   * What is remembered, or what `load` answers. Lookups under way are shared, unless something has become
   * void since they began. An error goes to everyone who waits for it and is never remembered.
   */
  getOrLoad(key: string, load: () => Promise<Value | Miss>): Promise<Value | Miss>;
  /** For an answer that is worked out by other means: taken before, and handed to `put` after. */
  begin(): Beginning;
  put(key: string, value: Value, beginning: Beginning): void;
  clear(): void;
}

export interface AnswerCacheOptions<Value> {
  /** The most answers, or what `sizeOf` may come to; beyond that the least used go. */
  readonly max: number;
  /** One, unless given. An answer larger than `max` is not remembered. */
  readonly sizeOf?: (value: Value) => number;
  /**
   * The most keys remembered to have no answer; none unless given. They are kept apart, so that a flood
   * of invented keys cannot push the answers out.
   */
  readonly maxMisses?: number;
  /** How long an answer holds, from its beginning. Zero: neither remembered nor shared. */
  readonly ttlMs: () => number;
  /** As `ttlMs`, for a key without an answer; the same unless given. */
  readonly missTtlMs?: () => number;
  /** When an answer ends by itself, in milliseconds since 1970. */
  readonly expiresAtMs?: (value: Value) => number | undefined;
  readonly voiding?: Voiding<Value>;
  /** The time of day, for what ends by itself. */
  readonly now?: () => number;
  readonly monotonicMs?: () => number;
}

interface Lookup<Answer> {
  /** Given again to those who ask later, so that no promise has to be made for them. */
  readonly answer: Promise<Answer>;
  readonly beginning: Beginning;
}

interface Hit<Value, Answer> extends Lookup<Answer> {
  readonly value: Value;
}

interface LookupUnderWay<Answer> extends Lookup<Answer> {
  readonly revocationCount: number;
}

const neverVoid: Voiding<unknown> = {
  epoch: () => 0,
  revocationCount: () => 0,
  isRevoked: () => false,
};

export function createAnswerCache<Value extends {}, Miss extends undefined = undefined>({
  max,
  sizeOf = () => 1,
  maxMisses = 0,
  ttlMs,
  missTtlMs = ttlMs,
  expiresAtMs = () => undefined,
  voiding = neverVoid,
  now = Date.now,
  monotonicMs = () => performance.now(),
}: AnswerCacheOptions<Value>): AnswerCache<Value, Miss> {
  type Answer = Value | Miss;
  // A gateway has caches for each of hundreds of servers.
  const hits = new LRUCache<string, Hit<Value, Answer>>({
    maxSize: max,
    sizeCalculation: ({ value }) => sizeOf(value),
  });
  const misses = new LRUCache<string, Lookup<Answer>>(growingUpTo(Math.max(1, maxMisses)));
  const underWay = new Map<string, LookupUnderWay<Answer>>();

  const begin = (): Beginning => ({ epoch: voiding.epoch(), atMs: monotonicMs() });

  function isRecent({ epoch, atMs }: Beginning, timeMs: number, ttl: number): boolean {
    return epoch === voiding.epoch() && timeMs < atMs + ttl;
  }

  function isExpired(value: Value): boolean {
    const endsAtMs = expiresAtMs(value);
    return endsAtMs !== undefined && endsAtMs <= now();
  }

  function find(key: string): Hit<Value, Answer> | undefined {
    const entry = hits.get(key);
    if (entry === undefined) return undefined;
    const holds =
      isRecent(entry.beginning, monotonicMs(), ttlMs()) &&
      !isExpired(entry.value) &&
      !voiding.isRevoked(entry.value, entry.beginning.atMs);
    if (holds) return entry;
    hits.delete(key);
    return undefined;
  }

  function findMiss(key: string): Lookup<Answer> | undefined {
    if (maxMisses === 0) return undefined;
    const miss = misses.get(key);
    return miss !== undefined && isRecent(miss.beginning, monotonicMs(), missTtlMs())
      ? miss
      : undefined;
  }

  function findUnderWay(key: string): Lookup<Answer> | undefined {
    const lookup = underWay.get(key);
    if (lookup === undefined) return undefined;
    // Its answer may be from before a change that the one who asks now knows to be made.
    const isCurrent =
      lookup.beginning.epoch === voiding.epoch() &&
      lookup.revocationCount === voiding.revocationCount();
    return isCurrent ? lookup : undefined;
  }

  function start(key: string, load: () => Promise<Answer>): Promise<Answer> {
    const beginning = begin();
    const revocationCount = voiding.revocationCount();
    const answer = load();
    const lookup = { answer, beginning, revocationCount };
    underWay.set(key, lookup);
    const isLatest = () => underWay.get(key) === lookup && underWay.delete(key);
    answer.then(
      (value) => {
        if (!isLatest()) return;
        if (value !== undefined) hits.set(key, { value, answer, beginning });
        else if (maxMisses > 0) misses.set(key, { answer, beginning });
      },
      () => void isLatest(),
    );
    return answer;
  }

  return {
    get: (key) => find(key)?.value,
    getOrLoad(key, load) {
      if (ttlMs() <= 0) return load();
      const known = find(key) ?? findMiss(key) ?? findUnderWay(key);
      return known === undefined ? start(key, load) : known.answer;
    },
    begin,
    put: (key, value, beginning) =>
      void hits.set(key, { value, answer: Promise.resolve(value), beginning }),
    clear() {
      hits.clear();
      misses.clear();
      underWay.clear();
    },
  };
}

/**
 * Options of an `LRUCache` of so many entries that takes memory as it fills. Its own option `max` would
 * take the room for all of them at once.
 */
export function growingUpTo(entries: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entries, sizeCalculation: () => 1 };
}

/**
 * Asks once for all keys that are asked for in the same turn of the event loop, as by requests that arrive
 * together. The answer was never begun before the question: it holds what was true by then.
 */
export function createBatchLoader<Key, Value>(
  load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>,
): (key: Key) => Promise<Value | undefined> {
  let keys = new Set<Key>();
  let loaded: Promise<ReadonlyMap<Key, Value>> | undefined;

  async function loadTogether(): Promise<ReadonlyMap<Key, Value>> {
    await new Promise(setImmediate);
    const asked = [...keys];
    keys = new Set();
    loaded = undefined;
    return load(asked);
  }

  return async (key) => {
    keys.add(key);
    loaded ??= loadTogether();
    return (await loaded).get(key);
  };
}

/** Says what is wrong, in a sentence, or undefined when nothing is. Never rejects. */
export type BoundedCheck = () => Promise<string | undefined>;

/**
 * Asks whether something works. The answer comes within `limitMs`, is shared by all who ask within
 * `freshMs`, and no second check begins while one is under way: what hangs is asked once.
 */
export function createBoundedCheck(options: {
  /** Rejects when it does not work. */
  readonly check: () => Promise<unknown>;
  readonly describe: (error: unknown) => string;
  readonly limitMs: number;
  readonly freshMs: number;
}): BoundedCheck {
  const { check, describe, limitMs, freshMs } = options;
  let last: { readonly problem: string | undefined; readonly atMs: number } | undefined;
  let underWay:
    | { readonly answer: Promise<string | undefined>; readonly sinceMs: number }
    | undefined;

  async function begin(): Promise<string | undefined> {
    let problem: string | undefined;
    try {
      await check();
    } catch (error) {
      problem = describe(error);
    }
    last = { problem, atMs: performance.now() };
    underWay = undefined;
    return problem;
  }

  return async () => {
    if (underWay === undefined) {
      if (last !== undefined && performance.now() - last.atMs < freshMs) return last.problem;
      underWay = { answer: begin(), sinceMs: performance.now() };
    }
    const { answer, sinceMs } = underWay;
    const leftMs = Math.max(0, sinceMs + limitMs - performance.now());
    return withinTime(answer, leftMs, () => `no answer within ${limitMs / 1000} seconds`);
  };
}
