import { describe, expect, test } from 'vitest';
import { addLoads, createLoadHistories, type LoadSample } from './load-history.ts';

/** Histories over a clock in the hands of the test. */
function createWorld(max?: number) {
  let nowMs = 0;
  const histories = createLoadHistories({ now: () => nowMs, ...(max !== undefined && { max }) });
  return {
    histories,
    pass: (seconds: number) => {
      nowMs += seconds * 1000;
    },
    /** Records a sample after each ten seconds. */
    sample(key: string, ...samples: readonly LoadSample[]) {
      for (const each of samples) {
        nowMs += 10_000;
        histories.record(key, each, 10);
      }
    },
  };
}

const busy = (cpuCores: number): LoadSample => ({ cpuCores, memoryBytes: 3 * 2 ** 30 });
const cpuOf = (world: ReturnType<typeof createWorld>, span: 'hour' | 'day' = 'hour') =>
  world.histories.read('a', span)?.figures.cpuCores;

describe('the past of a server', () => {
  test('holds what was measured, and requests by the second', () => {
    const world = createWorld();
    world.sample('a', {
      cpuCores: 0.5,
      memoryBytes: 412_000_000,
      requests: 20,
      answers: 4,
      answerSeconds: 1,
      webSockets: 3,
    });
    const { stepSeconds, figures } = world.histories.read('a', 'hour') ?? {};
    expect(stepSeconds).toBe(10);
    expect(figures?.cpuCores).toEqual([0.5]);
    expect((figures?.memoryBytes[0] ?? 0) / 412_000_000).toBeCloseTo(1, 2);
    expect(figures?.requestsPerSecond).toEqual([2]);
    expect(figures?.responseSeconds).toEqual([0.25]);
    expect(figures?.webSockets).toEqual([3]);
    expect(world.histories.latest('a')?.cpuCores).toBe(0.5);
  });

  test('has a gap where nothing was measured, in its middle and at its end', () => {
    const world = createWorld();
    world.sample('a', busy(1), {}, busy(2));
    world.pass(30);
    world.sample('a', busy(3));
    world.pass(25);
    expect(cpuOf(world)).toEqual([1, null, 2, null, null, null, 3, null, null]);
  });

  test('takes a timer that is late or early for the next step', () => {
    const world = createWorld();
    world.sample('a', busy(1));
    world.pass(3);
    world.sample('a', busy(2));
    world.pass(-3);
    world.sample('a', busy(3));
    expect(cpuOf(world)).toEqual([1, 2, 3]);
  });

  test('is an hour of steps of ten seconds, and a day of their means', () => {
    const world = createWorld();
    for (let step = 0; step < 30 * 289; step += 1) world.sample('a', busy(step % 30));
    const hour = cpuOf(world) ?? [];
    expect(hour).toHaveLength(360);
    expect(hour.at(-1)).toBe(29);
    expect(hour[0]).toBe(0);
    const day = cpuOf(world, 'day') ?? [];
    expect(day).toHaveLength(288);
    expect(new Set(day)).toEqual(new Set([14.5]));
  });

  test('weighs response times by answers, and says nothing where there were none', () => {
    const world = createWorld();
    const steps: LoadSample[] = Array.from({ length: 30 }, () => ({ requests: 0, answers: 0 }));
    steps[0] = { requests: 1, answers: 1, answerSeconds: 4 };
    steps[1] = { requests: 3, answers: 3, answerSeconds: 0 };
    world.sample('a', ...steps);
    expect(world.histories.read('a', 'day')?.figures.responseSeconds).toEqual([1]);
    expect(world.histories.read('a', 'hour')?.figures.responseSeconds.slice(0, 3)).toEqual([
      4,
      0,
      null,
    ]);
  });

  test('does not tell of now what is older than half a minute, and is forgotten after an hour of silence', () => {
    const world = createWorld();
    world.sample('a', busy(1));
    world.pass(31);
    expect(world.histories.latest('a')).toBeUndefined();
    expect(cpuOf(world)).toBeDefined();
    world.pass(3_600);
    world.histories.prune();
    expect(world.histories.size).toBe(0);
  });
});

describe('what all of it takes', () => {
  test('is less than 10 kB for each that is a day old', () => {
    const world = createWorld();
    for (let step = 0; step < 8_700; step += 1) world.sample('a', busy(1));
    expect(world.histories.bytes).toBeLessThan(10_000);
    world.sample('young', busy(1));
    expect(world.histories.bytes).toBeLessThan(10_000);
  });

  test('is bounded: what has been silent for longest makes room, what is in use does not', () => {
    const world = createWorld(2);
    world.sample('a', busy(1));
    world.pass(60);
    world.sample('b', busy(1));
    world.sample('c', busy(1));
    expect(world.histories.read('a', 'hour')).toBeUndefined();
    world.sample('d', busy(1));
    expect(world.histories.read('d', 'hour')).toBeUndefined();
    expect(world.histories.size).toBe(2);
  });
});

test('what several instances know is added up from its end', () => {
  const world = createWorld();
  const owner = createWorld();
  owner.sample('a', { cpuCores: 1, requests: 10, answers: 1, answerSeconds: 3 });
  owner.sample('a', { cpuCores: 2, requests: 10, answers: 1, answerSeconds: 3 });
  world.sample('a', { requests: 20, answers: 2, answerSeconds: 0 });
  const parts = [owner, world].flatMap(({ histories }) => histories.read('a', 'hour') ?? []);
  const { figures } = addLoads(parts) ?? {};
  expect(figures?.cpuCores).toEqual([1, 2]);
  expect(figures?.requestsPerSecond).toEqual([1, 3]);
  expect(figures?.responseSeconds).toEqual([3, 1]);
  expect(figures?.webSockets).toEqual([null, null]);
  expect(addLoads([])).toBeUndefined();
});
