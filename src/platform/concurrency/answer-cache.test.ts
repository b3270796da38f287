import { describe, expect, test } from 'vitest';
import { type AnswerCacheOptions, createAnswerCache } from './answer-cache.ts';

/** A cache of words under a clock and an epoch of the test, with lookups that the test answers. */
function cacheOfWords(options: Partial<AnswerCacheOptions<string>> = {}) {
  const world = { timeMs: 1_000, dateMs: 1_000, ttlMs: 100, epoch: 0, revoked: new Set<string>() };
  const lookups: PromiseWithResolvers<string | undefined>[] = [];
  const cache = createAnswerCache<string>({
    max: 10,
    ttlMs: () => world.ttlMs,
    now: () => world.dateMs,
    monotonicMs: () => world.timeMs,
    voiding: {
      epoch: () => world.epoch,
      revocationCount: () => world.revoked.size,
      isRevoked: (word) => world.revoked.has(word),
    },
    ...options,
  });
  const ask = (key: string) =>
    cache.getOrLoad(key, () => {
      const lookup = Promise.withResolvers<string | undefined>();
      lookups.push(lookup);
      return lookup.promise;
    });
  async function learn(key: string, word: string | undefined) {
    const answer = ask(key);
    lookups.at(-1)?.resolve(word);
    await answer;
  }
  return { world, cache, lookups, ask, learn };
}

test('an answer is given again until its time is over, which begins with its lookup', async () => {
  const { world, cache, lookups, ask } = cacheOfWords();
  const first = ask('key');
  world.timeMs += 60;
  lookups[0]?.resolve('word');
  expect(await first).toBe('word');
  world.timeMs += 39;
  expect(ask('key')).toBe(first);
  expect(cache.get('key')).toBe('word');
  world.timeMs += 1;
  expect(cache.get('key')).toBeUndefined();
  void ask('key');
  expect(lookups).toHaveLength(2);
});

test('those who ask together share one lookup', async () => {
  const { lookups, ask } = cacheOfWords();
  const answers = [ask('key'), ask('key'), ask('other')];
  expect(lookups).toHaveLength(2);
  for (const [index, lookup] of lookups.entries()) lookup.resolve(`word ${index}`);
  expect(await Promise.all(answers)).toEqual(['word 0', 'word 0', 'word 1']);
});

test('a failure goes to all who wait for it, and the next one asks again', async () => {
  const { lookups, ask, cache } = cacheOfWords();
  const answers = [ask('key'), ask('key')];
  lookups[0]?.reject(new Error('away'));
  for (const answer of answers) await expect(answer).rejects.toThrow('away');
  const next = ask('key');
  lookups[1]?.resolve('word');
  expect(await next).toBe('word');
  expect(cache.get('key')).toBe('word');
});

describe('a new epoch', () => {
  test('voids what is remembered', async () => {
    const { world, cache, learn } = cacheOfWords();
    await learn('key', 'word');
    world.epoch += 1;
    expect(cache.get('key')).toBeUndefined();
  });

  test('voids what was under way, for those who come after it', async () => {
    const { world, cache, lookups, ask } = cacheOfWords();
    const early = ask('key');
    world.epoch += 1;
    const late = ask('key');
    expect(lookups).toHaveLength(2);
    lookups[1]?.resolve('new');
    expect(await late).toBe('new');
    lookups[0]?.resolve('old');
    expect(await early).toBe('old');
    expect(cache.get('key')).toBe('new');
  });

  test('voids what was put in, when it came between', () => {
    const { world, cache } = cacheOfWords();
    const beginning = cache.begin();
    cache.put('before', 'word', beginning);
    expect(cache.get('before')).toBe('word');
    world.epoch += 1;
    cache.put('after', 'word', beginning);
    expect(cache.get('after')).toBeUndefined();
  });
});

describe('a revocation', () => {
  test('voids the answers that hang on it and no others', async () => {
    const { world, cache, learn } = cacheOfWords();
    await learn('a', 'kept');
    await learn('b', 'lost');
    world.revoked.add('lost');
    expect([cache.get('a'), cache.get('b')]).toEqual(['kept', undefined]);
  });

  test('keeps those who come after it from sharing a lookup that may not know of it', async () => {
    const { world, cache, lookups, ask } = cacheOfWords();
    const early = ask('key');
    world.revoked.add('lost');
    void ask('key');
    expect(lookups).toHaveLength(2);
    lookups[0]?.resolve('lost');
    await early;
    expect(cache.get('key')).toBeUndefined();
  });
});

test('an answer does not outlive its own end', async () => {
  const { world, cache, learn } = cacheOfWords({ expiresAtMs: () => 1_050 });
  await learn('key', 'word');
  world.dateMs = 1_049;
  expect(cache.get('key')).toBe('word');
  world.dateMs = 1_050;
  expect(cache.get('key')).toBeUndefined();
});

test('a clock that is set makes no answer last longer or shorter', async () => {
  const { world, cache, learn } = cacheOfWords();
  await learn('key', 'word');
  for (const dateMs of [-3_600_000, 3_600_000]) {
    world.dateMs = dateMs;
    expect(cache.get('key')).toBe('word');
  }
  world.dateMs = -3_600_000;
  world.timeMs += 100;
  expect(cache.get('key')).toBeUndefined();
});

describe('a key without an answer', () => {
  test('is asked about again, unless misses are kept', async () => {
    const { lookups, learn, ask } = cacheOfWords();
    await learn('key', undefined);
    void ask('key');
    expect(lookups).toHaveLength(2);
  });

  test('is remembered for its own time, apart from the answers', async () => {
    const { world, cache, lookups, learn, ask } = cacheOfWords({
      max: 1,
      maxMisses: 2,
      missTtlMs: () => 10,
    });
    await learn('known', 'word');
    for (const key of ['a', 'b', 'c']) await learn(key, undefined);
    expect(cache.get('known')).toBe('word');
    expect(await ask('c')).toBeUndefined();
    expect(lookups).toHaveLength(4);
    void ask('a');
    expect(lookups).toHaveLength(5);
    world.timeMs += 10;
    void ask('c');
    expect(lookups).toHaveLength(6);
  });

  test('is asked about again in a new epoch', async () => {
    const { world, lookups, learn, ask } = cacheOfWords({ maxMisses: 2 });
    await learn('key', undefined);
    world.epoch += 1;
    void ask('key');
    expect(lookups).toHaveLength(2);
  });
});

test('without a time to remember nothing is kept and nothing shared', async () => {
  const { world, cache, lookups, learn, ask } = cacheOfWords();
  await learn('key', 'word');
  world.ttlMs = 0;
  expect(cache.get('key')).toBeUndefined();
  void ask('key');
  void ask('key');
  expect(lookups).toHaveLength(3);
});

test('no more answers are kept than allowed', async () => {
  const { cache, learn } = cacheOfWords({ max: 2 });
  for (const key of ['a', 'b', 'c']) await learn(key, key);
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual([undefined, 'b', 'c']);
});
