import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createLifecycleWorld } from '../../../test/support/lifecycle-world.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createStartTimes } from './start-times-store.ts';

describeEachDatabase('how long starts take', (open) => {
  test('is the median of the last ones of a profile', async () => {
    const database = await open();
    const users = createUserStore(database);
    const times = createStartTimes(database);
    expect(await times.usualMs('gpu')).toBeUndefined();
    const starts = [
      ...Array.from({ length: 30 }, () => ['gpu', 90_000] as const),
      ...Array.from({ length: 10 }, () => ['gpu', 4_000] as const),
      ...Array.from({ length: 10 }, () => ['gpu', 6_000] as const),
      ['small', 1_000] as const,
    ];
    for (const [index, [profile, ms]] of starts.entries()) {
      const user = await users.create({ name: `user-${index}` });
      await addServer(database, user.id, 'stopped');
      await database.kysely
        .updateTable('servers')
        .set({ starting_at: index, start_ms: ms, start_profile: profile })
        .where('user_id', '=', user.id)
        .execute();
    }
    // A slow day long ago counts no more.
    expect(await times.usualMs('gpu')).toBe(4_000);
    expect(await times.usualMs('small')).toBe(1_000);
    expect(await times.usualMs(undefined)).toBeUndefined();
  });

  test('is known of each good start, and of no other', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const times = createStartTimes(database);
    const bad = await world.addServer('bad');
    world.readiness = async () => {
      throw new Error('It does not answer.');
    };
    await expect(world.start(bad)).rejects.toThrow('It does not answer.');
    expect(await times.usualMs(undefined)).toBeUndefined();
    expect((await world.stored(bad)).startingAt).toBeInstanceOf(Date);

    world.readiness = async () => undefined;
    const good = await world.addServer('good');
    await world.start(good);
    expect(await times.usualMs(undefined)).toBeGreaterThanOrEqual(0);
    await world.stop(good);
    expect(await times.usualMs(undefined)).toBeGreaterThanOrEqual(0);
  });
});
