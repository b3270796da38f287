import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createServerCountStore } from './server-count-store.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('the counts of servers', (open) => {
  test('tell of each state, and of servers whose instance is away', async () => {
    const database = await open();
    const { id: userId } = await createUserStore(database).create({ name: 'ada' });
    const servers = createServerStore(database);
    await enterInstance(database, { id: 'near' });
    await enterInstance(database, { id: 'lost' });
    await endLease(database, 'lost');
    for (const [name, state, instance_id] of [
      ['off', 'stopped', null],
      ['broken', 'stopped', null],
      ['soon', 'starting', 'near'],
      ['on', 'running', 'near'],
      ['left', 'running', 'lost'],
    ] as const) {
      const { id } = await servers.ensure(userId, name, undefined);
      await database.kysely
        .updateTable('servers')
        .set({ state, instance_id, failure: name === 'broken' ? '{}' : null })
        .where('id', '=', id)
        .execute();
    }
    expect(await createServerCountStore(database).countByState()).toEqual({
      failed: 1,
      running: 1,
      starting: 1,
      unreachable: 1,
    });
  });
});
