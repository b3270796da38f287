import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { createScriptedSpawner } from '../../../test/support/scripted-spawner.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';
import { createBoundedUsage } from './bounded-usage.ts';
import { isRescueState, joinSpawners } from './spawner-set.ts';

const spawnerOf = (profile: string | undefined) => profile ?? 'near';
const handlers = { onOutput: () => undefined };
const ending = { graceMs: 0, signal: new AbortController().signal };

test('each server is started, polled, found again and ended by the spawner of its profile', async () => {
  const [near, far] = [createScriptedSpawner(), createScriptedSpawner()];
  const members = [
    { name: 'near', spawner: near },
    { name: 'far', spawner: far },
  ] as const;
  const all = joinSpawners([...members], spawnerOf);
  const here = await all.start(createSpawnRequest({ serverId: 'one' }));
  const there = await all.start(createSpawnRequest({ serverId: 'two', profile: 'far' }));
  expect([near.running, far.running]).toEqual([new Map([['one', 1]]), new Map([['two', 1]])]);
  expect(there.state).toMatchObject({ serverId: 'two', generation: 1, spawner: 'far' });

  const next = joinSpawners([...members], spawnerOf);
  for (const { state, url } of [here, there]) {
    expect(await next.poll(state)).toEqual({ running: true });
    expect(await next.restore(state, handlers)).toMatchObject({ state, url });
  }
  await next.stop(there.state, ending);
  expect([near.running.size, far.running.size]).toEqual([1, 0]);
  expect(await next.poll(there.state)).toEqual({ running: false });
  await next.discard?.('two', { graceMs: 0, isOurs: () => true });
  expect([near.calls, far.calls].map((calls) => calls.at(-1))).toEqual([
    'discard two',
    'discard two',
  ]);
});

test('what the only spawner stores is as it stores it, and goes on when there is a second one', async () => {
  const near = createScriptedSpawner();
  const alone = joinSpawners([{ name: 'near', spawner: near }], spawnerOf);
  const { state } = await alone.start(createSpawnRequest({ serverId: 'one' }));
  expect(state).toMatchObject({ serverId: 'one', generation: 1 });
  expect(state).not.toHaveProperty('spawner');
  const both = joinSpawners(
    [
      { name: 'near', spawner: near },
      { name: 'far', spawner: createScriptedSpawner() },
    ],
    spawnerOf,
  );
  expect(await both.poll(state)).toEqual({ running: true });
});

test('a server of a spawner that is gone from the configuration is neither lost nor ended', async () => {
  const near = joinSpawners([{ name: 'near', spawner: createScriptedSpawner() }], spawnerOf);
  const state = { serverId: 'two', generation: 1, spawner: 'far' };
  const reason = 'The spawner "far" of the server is not configured any more.';
  expect(await near.poll(state)).toEqual({ running: 'unknown', reason });
  await expect(near.restore(state, handlers)).rejects.toThrow(reason);
  await expect(near.stop(state, ending)).rejects.toThrow(reason);
});

test('servers are within reach of other instances only where all spawners say so', () => {
  const anywhere = { ...createScriptedSpawner(), reach: 'anywhere' as const };
  const one = { name: 'near', spawner: anywhere };
  expect(joinSpawners([one], spawnerOf).reach).toBe('anywhere');
  const other = { name: 'far', spawner: createScriptedSpawner() };
  expect(joinSpawners([one, other], spawnerOf).reach).toBe('machine');
});

describe('what servers use', () => {
  const usage = (cpuCores: number) => ({
    cpuCores,
    memoryBytes: 1,
    uptimeSeconds: 1,
    processes: 1,
  });
  const states = [
    { id: 'a', spawner: 'near' },
    { id: 'b', spawner: 'far' },
    { id: 'c', spawner: 'gone' },
    { id: 'd', spawner: 'near' },
  ];

  function join(near: Pick<Spawner, 'usage'>, far: Pick<Spawner, 'usage'> = {}) {
    return joinSpawners(
      [
        { name: 'near', spawner: { ...createScriptedSpawner(), ...near } },
        { name: 'far', spawner: { ...createScriptedSpawner(), ...far } },
      ],
      spawnerOf,
    );
  }

  test('is asked of each spawner once, for all of its own', async () => {
    const asked: unknown[] = [];
    const all = join(
      {
        async usage(own) {
          asked.push(own);
          return [usage(1), undefined];
        },
      },
      { usage: async () => [usage(2)] },
    );
    expect(await all.usage(states)).toEqual([usage(1), usage(2), undefined, undefined]);
    expect(asked).toEqual([[{ id: 'a' }, { id: 'd' }]]);
  });

  test('is not known where a spawner fails or has no word for it, and that disturbs no other', async () => {
    const all = join(
      { usage: async () => [usage(1), usage(3)] },
      {
        usage: async () => {
          throw new Error('the engine is down');
        },
      },
    );
    expect(await all.usage(states)).toEqual([usage(1), undefined, undefined, usage(3)]);
    const unable = join({});
    expect(await unable.usage(states)).toEqual(states.map(() => undefined));
  });

  test('is waited for only so long, and one that hangs is not asked again until it has answered', async () => {
    const answers = [Promise.withResolvers<undefined[]>()];
    let asked = 0;
    const bounded = createBoundedUsage(
      {
        usage() {
          asked += 1;
          return answers[0]?.promise ?? Promise.resolve([]);
        },
      },
      { limitMs: 5 },
    );
    expect(await bounded([{}])).toEqual([]);
    expect(await bounded([{}])).toEqual([]);
    expect(asked).toBe(1);
    answers[0]?.resolve([]);
    await answers[0]?.promise;
    await new Promise(setImmediate);
    await bounded([{}]);
    expect(asked).toBe(2);
  });
});

test('that a server makes room in a full home is kept with its state, and its spawner hears nothing of it', async () => {
  const spawner = createScriptedSpawner();
  const set = joinSpawners([{ name: 'near', spawner }], spawnerOf);
  const { state } = await set.start({
    ...createSpawnRequest({ serverId: 'server-1' }),
    isRescue: true,
  });
  const plain = await set.start(createSpawnRequest({ serverId: 'server-2' }));
  expect([isRescueState(state), isRescueState(plain.state)]).toEqual([true, false]);
  const restored = await set.restore(state, handlers);
  expect(restored?.state).toEqual(state);
  expect(await set.homeSpace({ workingDirectory: '/home/ann' })).toBeUndefined();
});
