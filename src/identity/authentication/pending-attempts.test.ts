import { beforeEach, describe, expect, test } from 'vitest';
import { memorySpace } from '../../../test/support/memory-space.ts';
import { createTestThrottle } from '../../../test/support/test-throttle.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import type { LoginThrottle, LoginThrottleOptions } from './login-throttle.ts';
import type { ThrottleRecord } from './throttle-counters.ts';

let nowMs: number;
let records: KeyvSpace<ThrottleRecord>;
let throttle: LoginThrottle;

beforeEach(() => {
  nowMs = Date.now();
  records = memorySpace<ThrottleRecord>();
  throttle = createThrottle();
});

/** Of a hub of its own, with what all hubs share. */
function createThrottle(options: Partial<LoginThrottleOptions> = {}): LoginThrottle {
  return createTestThrottle({ records, now: () => nowMs, ...options });
}

test('of many guesses at once no more than the limit are compared', async () => {
  let compared = 0;
  const guesses = Array.from({ length: 20 }, () =>
    throttle.attempt(
      { userName: 'ada', address: '192.0.2.1' },
      async () => {
        compared += 1;
        await new Promise((resolve) => setImmediate(resolve));
        return false;
      },
      () => 'failure',
    ),
  );
  const results = await Promise.all(guesses);
  expect(compared).toBe(3);
  expect(results.filter(({ outcome }) => outcome === 'delayed')).toHaveLength(17);
});

test('a queue for one name is bounded', async () => {
  const gate = Promise.withResolvers<boolean>();
  const waiting = Array.from({ length: 200 }, () =>
    throttle.attempt(
      { userName: 'ada', address: '192.0.2.1' },
      () => gate.promise,
      () => 'neutral',
    ),
  );
  const firstRefused = await Promise.race(waiting);
  expect(firstRefused).toEqual({ outcome: 'delayed', retryAfterSeconds: 1 });
  gate.resolve(true);
  await Promise.all(waiting);
});

test('of many guesses at many names at once, an address gets only so many', async () => {
  let compared = 0;
  const gate = Promise.withResolvers<boolean>();
  const guesses = Array.from({ length: 100 }, (_, index) =>
    throttle.attempt(
      { userName: `user${index}`, address: '192.0.2.1' },
      () => {
        compared += 1;
        return gate.promise;
      },
      () => 'failure',
    ),
  );
  gate.resolve(false);
  await Promise.all(guesses);
  expect(compared).toBeLessThanOrEqual(30);
});

describe('of guesses at several hubs at once, no more are compared than at one', () => {
  const hubs = 4;

  async function compared(
    attemptOf: (index: number) => { readonly userName: string; readonly address: string },
    count: number,
  ): Promise<number> {
    const throttles = Array.from({ length: hubs }, () => createThrottle());
    let begun = 0;
    const guesses = Array.from({ length: count }, (_, index) =>
      throttles[index % hubs]?.attempt(
        attemptOf(index),
        async () => {
          begun += 1;
          await new Promise((resolve) => setImmediate(resolve));
        },
        () => 'failure',
      ),
    );
    await Promise.all(guesses);
    return begun;
  }

  test('for one name from one address', async () => {
    expect(await compared(() => ({ userName: 'ada', address: '192.0.2.1' }), 40)).toBe(3);
  });

  test('for many names from one address', async () => {
    const attemptOf = (index: number) => ({ userName: `user${index}`, address: '192.0.2.1' });
    expect(await compared(attemptOf, 100)).toBe(30);
  });

  test('for one name from many addresses', async () => {
    const attemptOf = (index: number) => ({ userName: 'ada', address: `10.0.${index}.1` });
    expect(await compared(attemptOf, 400)).toBe(300);
  });
});

test('a place that a hub took and never gave back is free again', async () => {
  const limited = { lockout_attempts: 1 };
  void createThrottle(limited).attempt(
    { userName: 'ada', address: '192.0.2.1' },
    () => new Promise(() => undefined),
    () => 'neutral',
  );
  const other = createThrottle({ ...limited, maxWaitMs: 20 });
  const attempt = () =>
    other.attempt(
      { userName: 'ada', address: '192.0.2.1' },
      () => Promise.resolve(),
      () => 'success',
    );
  expect(await attempt()).toMatchObject({ outcome: 'delayed', isCrowded: true });
  nowMs += 60_000;
  expect(await attempt()).toMatchObject({ outcome: 'tried' });
});

test('people with right passwords behind one address all get in, however many come at once', async () => {
  let inside = 0;
  let max = 0;
  const logins = Array.from({ length: 200 }, (_, index) =>
    throttle.attempt(
      { userName: `pupil${index}`, address: '192.0.2.1' },
      async () => {
        inside += 1;
        max = Math.max(max, inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
      },
      () => 'success',
    ),
  );
  const outcomes = (await Promise.all(logins)).map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome !== 'tried')).toEqual([]);
  expect(max).toBeLessThanOrEqual(30);
});

test('one whose turn does not come in time is told when to come back, not that they failed', async () => {
  throttle = createThrottle({ maxWaitMs: 20 });
  const gate = Promise.withResolvers<void>();
  const attempts = Array.from({ length: 40 }, (_, index) =>
    throttle.attempt(
      { userName: `pupil${index}`, address: '192.0.2.1' },
      () => gate.promise,
      () => 'success',
    ),
  );
  const late = await Promise.all(attempts.slice(30));
  for (const result of late) expect(result).toMatchObject({ outcome: 'delayed', isCrowded: true });
  gate.resolve();
  for (const result of await Promise.all(attempts.slice(0, 30))) {
    expect(result.outcome).toBe('tried');
  }
  expect(await throttle.list()).toEqual([]);
});

test('one who leaves the line makes room for the next', async () => {
  const gate = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const attempt = (userName: string, signal?: AbortSignal) =>
    throttle.attempt(
      { userName, address: '192.0.2.1', signal },
      () => gate.promise,
      () => 'success',
    );
  const first = Array.from({ length: 30 }, (_, index) => attempt(`pupil${index}`));
  const left = attempt('left', leaving.signal);
  const last = attempt('last');
  leaving.abort();
  expect(await left).toMatchObject({ outcome: 'delayed', isCrowded: true });
  gate.resolve();
  expect((await Promise.all([...first, last])).map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: 31 }, () => 'tried'),
  );
});

test('one address that takes all places gives them up to others, its newest first', async () => {
  throttle = createThrottle({ max_pending_logins: 5, lockout_attempts: 100 });
  const gate = Promise.withResolvers<void>();
  const attempt = (userName: string, address: string) =>
    throttle.attempt(
      { userName, address },
      (patience) =>
        new Promise((resolve, reject) => {
          patience.addEventListener('abort', () => reject(patience.reason));
          void gate.promise.then(resolve);
        }),
      () => 'success',
    );
  const greedy = Array.from({ length: 5 }, (_, index) => attempt(`name${index}`, '192.0.2.1'));
  const others = [attempt('ada', '192.0.2.2'), attempt('bob', '192.0.2.3')];
  expect(await greedy[4]).toMatchObject({ outcome: 'delayed', isCrowded: true });
  expect(await attempt('eve', '192.0.2.1')).toMatchObject({ isCrowded: true });
  gate.resolve();
  const outcomes = (await Promise.all([...greedy, ...others])).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['tried', 'tried', 'tried', 'delayed', 'delayed', 'tried', 'tried']);
});

test('beyond the attempts that may be pending, one is refused at once', async () => {
  throttle = createThrottle({ max_pending_logins: 5 });
  const gate = Promise.withResolvers<void>();
  const attempts = Array.from({ length: 6 }, (_, index) =>
    throttle.attempt(
      { userName: `pupil${index}`, address: `192.0.2.${index}` },
      () => gate.promise,
      () => 'success',
    ),
  );
  expect(await attempts[5]).toMatchObject({ outcome: 'delayed', isCrowded: true });
  gate.resolve();
  for (const result of await Promise.all(attempts.slice(0, 5))) {
    expect(result.outcome).toBe('tried');
  }
});
