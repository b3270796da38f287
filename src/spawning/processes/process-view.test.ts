import { createServer } from 'node:http';
import { pid } from 'node:process';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import type { Clock } from './clock.ts';
import { createSharedScan, createSharedView, directView } from './process-view.ts';

describe('a shared look', () => {
  /** A clock that goes on only when somebody sleeps; each look takes a second. */
  function create() {
    let now = 0;
    const begun: number[] = [];
    const waiting: (() => void)[] = [];
    const clock: Clock = {
      now: () => Date.now(),
      monotonicMs: () => now,
      async sleep(ms: number) {
        now += ms;
      },
    };
    const look = createSharedScan(async () => {
      begun.push(now);
      await new Promise<void>((resolve) => waiting.push(resolve));
      now += 1_000;
      return begun.length;
    }, clock);
    const settle = async () => {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      waiting.shift()?.();
    };
    return { look, begun, settle };
  }

  test('is one for all who ask before it begins, and a later one for who asks during it', async () => {
    const { look, begun, settle } = create();
    const early = [look(), look()];
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    const late = [look(), look()];
    await settle();
    expect(await Promise.all(early)).toEqual([1, 1]);
    await settle();
    expect(await Promise.all(late)).toEqual([2, 2]);
    expect(begun).toHaveLength(2);
  });

  test('rests after it, the longer the more it took', async () => {
    const { look, begun, settle } = create();
    for (let round = 0; round < 3; round += 1) {
      const seen = look();
      await settle();
      await seen;
    }
    expect(begun).toEqual([0, 4_000, 8_000]);
  });

  test('that fails fails only for those who shared it', async () => {
    let looks = 0;
    const look = createSharedScan(async () => {
      looks += 1;
      if (looks === 1) throw new Error('no table');
      return looks;
    });
    const first = [look(), look()];
    for (const each of first) await expect(each).rejects.toThrow('no table');
    expect(await look()).toBe(2);
  });
});

test.each([
  ['directly', directView],
  ['shared', createSharedView()],
])('the processes and ports of the machine are seen %s', async (_, view) => {
  const server = createServer();
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect((await view.processes()).some((each) => each.pid === pid)).toBe(true);
  expect(await view.listenersOn(port)).toHaveLength(1);
  expect(await view.taggedWith('nobody carries this')).toEqual([]);
  await new Promise((resolve) => server.close(resolve));
  expect(await view.listenersOn(port)).toEqual([]);
});
