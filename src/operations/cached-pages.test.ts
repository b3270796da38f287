import { expect, test } from 'vitest';
import { JsonText } from '../platform/protocol/json-text.ts';
import { createCachedPages } from './cached-pages.ts';

const scopes = new Set(['list:users']);

/** Pages of names in a database whose version and epoch the test sets. */
function pagesOfNames() {
  const world = {
    version: 1 as number | undefined,
    epoch: 1,
    timeMs: 0,
    names: ['ann'],
    reads: 0,
  };
  const pages = createCachedPages<string>({
    database: { contentVersion: () => world.version },
    changes: { epoch: () => world.epoch },
    monotonicMs: () => world.timeMs,
  });
  const ask = async (question: object, held = scopes) => {
    const { items } = await pages.read(held, question, async () => {
      world.reads += 1;
      return { items: new JsonText(world.names), total: world.names.length };
    });
    return JSON.parse(items.bytes.toString()) as string[];
  };
  return { world, ask };
}

test('a page is read once for callers with the same scopes while nothing is written', async () => {
  const { world, ask } = pagesOfNames();
  const first = { offset: 0 };
  expect(await Promise.all([ask(first), ask({ offset: 0 })])).toEqual([['ann'], ['ann']]);
  expect(world.reads).toBe(1);
  await ask({ offset: 200 });
  await ask(first, new Set(['list:users']));
  expect(world.reads).toBe(3);
});

test.each(['version', 'epoch'] as const)(
  'a page is read again after a change of the %s',
  async (what) => {
    const { world, ask } = pagesOfNames();
    expect(await ask({})).toEqual(['ann']);
    world.names = ['ann', 'bea'];
    world[what] = 2;
    expect(await ask({})).toEqual(['ann', 'bea']);
  },
);

test('a page is read again after a second: a lease that runs out is no change', async () => {
  const { world, ask } = pagesOfNames();
  await ask({});
  world.timeMs = 999;
  await ask({});
  expect(world.reads).toBe(1);
  world.timeMs = 1_000;
  await ask({});
  expect(world.reads).toBe(2);
});

test('nothing is remembered of a database that does not tell whether something was written', async () => {
  const { world, ask } = pagesOfNames();
  await ask({});
  world.version = undefined;
  await ask({});
  await ask({});
  expect(world.reads).toBe(3);
});

test('a page that is larger than all that may be remembered is read each time', async () => {
  const { world, ask } = pagesOfNames();
  world.names = ['a'.repeat(5 * 1024 * 1024)];
  await ask({});
  await ask({});
  expect(world.reads).toBe(2);
});
