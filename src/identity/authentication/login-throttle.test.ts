import { beforeEach, describe, expect, test } from 'vitest';
import { memorySpace } from '../../../test/support/memory-space.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import {
  createLoginThrottle,
  type LoginThrottle,
  type LoginThrottleOptions,
  networkOf,
} from './login-throttle.ts';
import type { ThrottleRecord } from './throttle-counters.ts';

const start = Date.now();
let nowMs: number;
let records: KeyvSpace<ThrottleRecord>;
let throttle: LoginThrottle;

beforeEach(() => {
  nowMs = start;
  records = memorySpace<ThrottleRecord>();
  throttle = createThrottle();
});

function createThrottle(options: Partial<LoginThrottleOptions> = {}): LoginThrottle {
  return createLoginThrottle({
    records,
    lockout_attempts: 3,
    lockout_delay: 10,
    lockout_max_delay: 60,
    max_pending_logins: 500,
    now: () => nowMs,
    ...options,
  });
}

/** Tries a login; true when the password was compared at all. */
async function isTried(
  userName: string,
  isRight: boolean,
  address = '192.0.2.1',
  knownBrowser?: string,
) {
  const result = await throttle.attempt(
    { userName, address, knownBrowser },
    () => Promise.resolve(isRight),
    (right) => (right ? 'success' : 'failure'),
  );
  return result.outcome === 'tried';
}

async function retryAfter(userName: string, address = '192.0.2.1') {
  const result = await throttle.attempt(
    { userName, address },
    () => Promise.reject(new Error('the password must not be compared')),
    () => 'neutral',
  );
  return result.outcome === 'delayed' ? result.retryAfterSeconds : undefined;
}

test('after the allowed failures the next attempt must wait, even with the right password', async () => {
  for (let failure = 0; failure < 3; failure++) expect(await isTried('ada', false)).toBe(true);
  expect(await retryAfter('ada')).toBe(10);
  expect(await isTried('ada', true)).toBe(false);
});

test('the delay doubles with each failure, up to the longest', async () => {
  for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
  const delays: (number | undefined)[] = [];
  for (let failure = 0; failure < 5; failure++) {
    const delay = await retryAfter('ada');
    delays.push(delay);
    nowMs += (delay ?? 0) * 1000;
    expect(await isTried('ada', false)).toBe(true);
  }
  expect(delays).toEqual([10, 20, 40, 60, 60]);
});

test('attempts during the delay do not prolong it', async () => {
  for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
  for (let attempt = 0; attempt < 50; attempt++) await isTried('ada', false);
  nowMs += 10_000;
  expect(await isTried('ada', true)).toBe(true);
});

test('a clock that is set back by an hour makes no user wait an hour longer', async () => {
  for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
  nowMs -= 3_600_000;
  expect(await retryAfter('ada')).toBe(10);
  nowMs += 9_000;
  expect(await retryAfter('ada')).toBe(1);
  nowMs += 1_000;
  expect(await isTried('ada', true)).toBe(true);
});

test('a success clears the name', async () => {
  await isTried('ada', false);
  await isTried('ada', false);
  await isTried('ada', true);
  await isTried('ada', false);
  await isTried('ada', false);
  expect(await isTried('ada', true)).toBe(true);
});

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

test('one name per guess does not help: the address must wait, too', async () => {
  for (let guess = 0; guess < 30; guess++) expect(await isTried(`user${guess}`, false)).toBe(true);
  expect(await retryAfter('somebody-else')).toBe(10);
  expect(await isTried('somebody-else', true, '192.0.2.2')).toBe(true);
});

test('an attacker does not clear an address by logging in now and then', async () => {
  for (let guess = 0; guess < 28; guess++) await isTried(`user${guess}`, false);
  await isTried('mallory', true);
  for (let guess = 0; guess < 3; guess++) await isTried(`other${guess}`, false);
  expect(await isTried('anybody', false)).toBe(false);
});

test('logging in with an account of one’s own forgives nothing about other names', async () => {
  let tried = 0;
  for (let guess = 0; guess < 100; guess++) {
    if (await isTried(`user${guess}`, false)) tried += 1;
    await isTried('mallory', true);
  }
  expect(tried).toBe(30);
});

test('what one mistyped oneself is taken back from a shared address', async () => {
  for (let pupil = 0; pupil < 100; pupil++) {
    expect(await isTried(`pupil${pupil}`, false)).toBe(true);
    expect(await isTried(`pupil${pupil}`, true)).toBe(true);
  }
});

test('no one locks out a user who comes from another address', async () => {
  for (let guess = 0; guess < 50; guess++) await isTried('ada', false, '198.51.100.7');
  expect(await isTried('ada', true, '198.51.100.7')).toBe(false);
  expect(await isTried('ada', true)).toBe(true);
});

test('guesses from many addresses hold up all but a browser that is known', async () => {
  for (let guess = 0; guess < 300; guess++) {
    expect(await isTried('ada', false, `10.0.${guess}.1`)).toBe(true);
  }
  expect(await isTried('ada', true, '192.0.2.9')).toBe(false);
  expect(await isTried('ada', true, '192.0.2.9', 'laptop')).toBe(true);
  for (let guess = 0; guess < 3; guess++) await isTried('ada', false, '192.0.2.9', 'laptop');
  expect(await isTried('ada', true, '192.0.2.9', 'laptop')).toBe(false);
  expect(await throttle.lift({ kind: 'user', subject: 'ada' })).toBe(true);
  expect(await isTried('ada', true, '192.0.2.9')).toBe(true);
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

test('failures of an address are forgotten in time, however many log in there meanwhile', async () => {
  for (let guess = 0; guess < 20; guess++) await isTried(`user${guess}`, false);
  void throttle.attempt(
    { userName: 'slow', address: '192.0.2.1' },
    () => new Promise(() => undefined),
    () => 'neutral',
  );
  for (let half = 0; half < 6; half++) {
    nowMs += 30_000;
    await isTried('ada', true);
  }
  for (let guess = 0; guess < 20; guess++) expect(await isTried(`late${guess}`, false)).toBe(true);
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

test('an address in IPv6 is its /64 network', async () => {
  for (let guess = 0; guess < 30; guess++) {
    await isTried(`user${guess}`, false, `2001:db8::${guess.toString(16)}`);
  }
  expect(await isTried('ada', true, '2001:db8:0:0:ffff::1')).toBe(false);
  expect(await isTried('ada', true, '2001:db8:0:1::1')).toBe(true);
});

test('names of any length and kind are counted, and take no more room', async () => {
  const name = 'x'.repeat(1_000_000);
  for (let failure = 0; failure < 3; failure++) await isTried(name, false);
  expect(await isTried(name, true)).toBe(false);
  const [record] = await throttle.list();
  expect(record?.subject).toHaveLength(255);
  if (record !== undefined) expect(await throttle.lift(record)).toBe(true);
  expect(await isTried(name, true)).toBe(true);
});

test('failures outlive the process and are seen by another', async () => {
  for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
  throttle = createThrottle();
  expect(await isTried('ada', true)).toBe(false);
});

test('a failing attempt of the provider counts for nothing and blocks no user', async () => {
  for (let attempt = 0; attempt < 5; attempt++) {
    const failing = throttle.attempt(
      { userName: 'ada', address: '192.0.2.1' },
      () => Promise.reject(new Error('provider is down')),
      () => 'failure',
    );
    await expect(failing).rejects.toThrow('provider is down');
  }
  expect(await isTried('ada', true)).toBe(true);
});

describe('an administrator', () => {
  test('sees who must wait', async () => {
    await isTried('bob', false);
    for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
    expect(await throttle.list()).toEqual([
      {
        kind: 'user',
        subject: 'ada',
        from: '192.0.2.1',
        failures: 3,
        lastFailureAt: start,
        lockedUntil: start + 10_000,
      },
    ]);
  });

  test('can lift a delay', async () => {
    for (let failure = 0; failure < 3; failure++) await isTried('ada', false);
    expect(await throttle.lift({ kind: 'user', subject: 'ada' })).toBe(true);
    expect(await throttle.list()).toEqual([]);
    expect(await isTried('ada', true)).toBe(true);
    expect(await throttle.lift({ kind: 'user', subject: 'nobody' })).toBe(false);
  });

  test('lifts the delay of an address as it is listed', async () => {
    for (let guess = 0; guess < 30; guess++) await isTried(`user${guess}`, false, '2001:db8::1');
    const [record] = await throttle.list();
    expect(record).toMatchObject({ kind: 'address', subject: '2001:db8:0:0::/64' });
    if (record !== undefined) expect(await throttle.lift(record)).toBe(true);
    expect(await isTried('ada', true, '2001:db8::1')).toBe(true);
  });
});

test.for([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0DB8:0000:0000:1:2:3:4', '2001:db8:0:0::/64'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4::/64'],
  ['1:2::3:4:5:6', '1:2:0:0::/64'],
  ['1:2::', '1:2:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['not an address', 'not an address'],
  ['2001:db8:0:0::/64', '2001:db8:0:0::/64'],
])('%s counts as %s', ([address = '', network]) => {
  expect(networkOf(address)).toBe(network);
});
