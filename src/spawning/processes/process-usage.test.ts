import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath } from 'node:process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { noCgroups } from './cgroup.ts';
import { createServerMeter } from './process-usage.ts';
import { directView } from './process-view.ts';

const tag = 'trial#1';

let child: ChildProcess;
let pid: number;
beforeEach(() => {
  child = spawn(execPath, ['--eval', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' });
  pid = child.pid!;
});
afterEach(async () => {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
});

/** A server in a cgroup of which the test says what it has used, and how often it was looked at closely. */
function meterOf(members: () => readonly number[]) {
  const world = { looks: 0, counts: 0, counter: 1, nowMs: 0 };
  const measure = createServerMeter({
    view: directView,
    cgroups: {
      ...noCgroups,
      cpuSeconds() {
        world.counts += 1;
        return world.counter;
      },
      members() {
        world.looks += 1;
        return members();
      },
    },
    monotonicMs: () => world.nowMs,
  });
  return {
    world,
    measure: async (count = 1) => {
      const servers = Array.from({ length: count }, (_, index) => ({ pid, tag: tag + index }));
      return (await measure(servers)).get(pid);
    },
  };
}

describe('a server whose cgroup has used nothing since', () => {
  test('is at rest, and not looked at again for five minutes', async () => {
    const { world, measure } = meterOf(() => [pid]);
    const first = await measure();
    expect(first).toMatchObject({ processes: 1, cpuSeconds: 1 });
    world.nowMs = 290_000;
    const uptimeSeconds = first!.uptimeSeconds + 290;
    expect(await measure()).toEqual({ ...first, cpuCores: 0, uptimeSeconds });
    expect(world.looks).toBe(1);
    world.nowMs = 301_000;
    expect(await measure()).toMatchObject({ processes: 1, cpuCores: 0 });
    expect(world.looks).toBe(2);
  });

  test('is measured as soon as it works, for the time since it was at rest', async () => {
    const { world, measure } = meterOf(() => [pid]);
    await measure();
    world.nowMs = 20_000;
    await measure();
    Object.assign(world, { counter: 2, nowMs: 24_000 });
    expect(await measure()).toMatchObject({ cpuSeconds: 2, cpuCores: 0.25, processes: 1 });
    expect(world.looks).toBe(2);
  });

  test('is counted each half a minute once it has rested for one, where many servers run', async () => {
    const { world, measure } = meterOf(() => [pid]);
    const countsAt = async (nowMs: number, servers: number) => {
      Object.assign(world, { nowMs, counts: 0 });
      await measure(servers);
      return world.counts;
    };
    for (const nowMs of [0, 10_000, 60_000]) expect(await countsAt(nowMs, 101)).toBe(101);
    for (const nowMs of [70_000, 80_000]) expect(await countsAt(nowMs, 101)).toBe(0);
    // One that is asked for by itself may be about to end.
    expect(await countsAt(85_000, 1)).toBe(1);
    expect(await countsAt(90_000, 101)).toBe(100);
    world.counter = 2;
    expect(await countsAt(150_000, 101)).toBe(101);
    for (const nowMs of [160_000, 170_000]) expect(await countsAt(nowMs, 101)).toBe(101);
  });

  test('is looked at each time while a process of it is in another cgroup', async () => {
    const { world, measure } = meterOf(() => [4_194_305]);
    await measure();
    await measure();
    expect(world.looks).toBe(2);
  });
});
