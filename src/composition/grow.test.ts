import { describe, expect, test } from 'vitest';
import { grow } from './grow.ts';

describe('grow', () => {
  test('gives each part the services of those before it, in order', async () => {
    const order: string[] = [];
    const { doubled, sum } = await grow({ one: 1 })
      .with(async ({ one }) => {
        await Promise.resolve();
        order.push('doubled');
        return { doubled: one * 2 };
      })
      .with(({ one, doubled }) => {
        order.push('sum');
        return { sum: one + doubled };
      }).grown;
    expect({ doubled, sum, order }).toEqual({ doubled: 2, sum: 3, order: ['doubled', 'sum'] });
  });

  test('calls no part after one that failed', async () => {
    const calls: string[] = [];
    const growing = grow({}).with((): object => {
      throw new Error('no database');
    });
    await expect(growing.with(() => ({ late: calls.push('late') })).grown).rejects.toThrow(
      'no database',
    );
    expect(calls).toEqual([]);
  });

  test('does not compile with a name twice', async () => {
    // @ts-expect-error: users are there already.
    await grow({ users: 1 }).with(async () => ({ users: 2, groups: 3 })).grown;
  });
});
