import { beforeEach, describe, expect, test } from 'vitest';
import { memorySpace } from '../../../test/support/memory-space.ts';
import { createTestThrottle } from '../../../test/support/test-throttle.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import { type LoginThrottle, networkOf } from './login-throttle.ts';
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

function createThrottle(): LoginThrottle {
  return createTestThrottle({ records, now: () => nowMs });
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
