import Keyv from 'keyv';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { HubError } from '../../platform/errors.ts';
import { type BatchReport, createBatches } from './batches.ts';

const log = pino({ level: 'silent' });

function createWorld() {
  const reports = new Keyv<BatchReport>();
  const clock = { ms: 1_000 };
  const create = () => createBatches({ reports, now: () => clock.ms, log });
  return { reports, clock, create };
}

const asked = { by: 'ada', title: 'Start', returnTo: '/hub/admin' };
const names = Array.from({ length: 50 }, (_, index) => `user-${index}`);

test('does the work for each once, a few at a time, and says what failed', async () => {
  await using batches = createWorld().create();
  const done: string[] = [];
  let atOnce = 0;
  let max = 0;
  const { id, finished } = await batches.start({
    ...asked,
    names,
    async work(name) {
      atOnce += 1;
      max = Math.max(max, atOnce);
      await Promise.resolve();
      atOnce -= 1;
      if (name === 'user-7') throw new HubError('conflict', 'It runs already.');
      if (name === 'user-8') throw new TypeError('secret detail');
      done.push(name);
    },
  });
  const report = await finished;
  expect(done.toSorted()).toEqual(
    names.filter((name) => name !== 'user-7' && name !== 'user-8').toSorted(),
  );
  expect(max).toBeLessThanOrEqual(4);
  expect(report).toMatchObject({ total: 50, done: 48, failed: 2, isCutShort: false });
  expect(report.problems).toEqual([
    { name: 'user-7', message: 'It runs already.' },
    { name: 'user-8', message: { key: 'Something went wrong.', values: [] } },
  ]);
  expect(await batches.find(id, 'ada')).toEqual(report);
  expect(await batches.find(id, 'mallory')).toBeUndefined();
  expect(await batches.find('no such', 'ada')).toBeUndefined();
});

test('does it for a hundred together, and for one after the other where one is refused', async () => {
  await using batches = createWorld().create();
  const many = Array.from({ length: 250 }, (_, index) => `user-${index}`);
  const together: (readonly string[])[] = [];
  const alone: string[] = [];
  const { finished } = await batches.start({
    ...asked,
    names: many,
    async work(name) {
      if (name === 'user-120') throw new HubError('forbidden', 'This user may do more.');
      alone.push(name);
    },
    async workTogether(several) {
      if (several.includes('user-120')) throw new HubError('forbidden', 'Not one of them.');
      together.push(several);
    },
  });
  expect(await finished).toMatchObject({
    done: 249,
    failed: 1,
    isCutShort: false,
    problems: [{ name: 'user-120', message: 'This user may do more.' }],
  });
  expect(together.toSorted((one, other) => other.length - one.length)).toEqual([
    many.slice(0, 100),
    many.slice(200),
  ]);
  expect(alone).toEqual(many.slice(100, 200).filter((name) => name !== 'user-120'));
});

test('tries again what was refused for the moment', async () => {
  await using batches = createWorld().create();
  let refusals = 3;
  const { finished } = await batches.start({
    ...asked,
    names: ['bob'],
    async work() {
      refusals -= 1;
      if (refusals < 0) return;
      throw new HubError('too_many_requests', 'Too many starts.', { retryAfterSeconds: 0.001 });
    },
  });
  expect(await finished).toMatchObject({ done: 1, failed: 0 });
});

test('keeps a bounded list of what failed', async () => {
  await using batches = createWorld().create();
  const work = () => Promise.reject(new HubError('not_found', 'There is no such user.'));
  const { finished } = await batches.start({ ...asked, names, work });
  const report = await finished;
  expect(report.failed).toBe(50);
  expect(report.problems).toHaveLength(20);
});

test('does not go on beside too many others', async () => {
  const batches = createWorld().create();
  const { promise, resolve } = Promise.withResolvers<void>();
  const start = () => batches.start({ ...asked, names: ['bob'], work: () => promise });
  for (let index = 0; index < 4; index += 1) await start();
  await expect(start()).rejects.toMatchObject({ code: 'too_many_requests' });
  resolve();
  await batches[Symbol.asyncDispose]();
  await start();
});

test('stops with the hub, after what it has begun, and says so', async () => {
  const { create } = createWorld();
  const batches = create();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { id } = await batches.start({ ...asked, names, work: () => promise });
  const stopped = batches[Symbol.asyncDispose]();
  resolve();
  await stopped;
  await using other = create();
  const report = await other.find(id, 'ada');
  expect(report).toMatchObject({ total: 50, done: 4, isCutShort: true });
});

test('of a hub that was killed is said to be cut short', async () => {
  const { create, clock } = createWorld();
  const killed = create();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { id } = await killed.start({ ...asked, names, work: () => promise });
  await using other = create();
  expect((await other.find(id, 'ada'))?.finishedAt).toBeUndefined();
  clock.ms += 31_000;
  expect(await other.find(id, 'ada')).toMatchObject({ isCutShort: true, finishedAt: 1_000 });
  resolve();
  await killed[Symbol.asyncDispose]();
});
