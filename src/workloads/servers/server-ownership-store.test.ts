import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { enterInstance } from '../../../test/support/instances.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createServerOwnership } from './server-ownership-store.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('which servers are whose', (open) => {
  test('is surveyed as it is listed: live, orphaned, handed over, with odd names', async () => {
    const database = await open();
    const store = createServerStore(database);
    const users = createUserStore(database);
    const instance = { id: 'one', machineId: 'machine', isMachineBound: true };
    const ownership = createServerOwnership(database, instance);
    await enterInstance(database, { id: 'one' });
    expect((await ownership.survey()).signature).toBe(ownership.signatureOf([]));
    const owners = ['one', 'gone', null, 'one'];
    for (const [index, instance_id] of owners.entries()) {
      const { id: userId } = await users.create({ name: `äß, ${index}` });
      const { id } = await store.ensure(userId, index === 3 ? 'named' : '');
      await database.kysely
        .updateTable('servers')
        .set({ state: 'running', instance_id, url: index === 1 ? null : `http://h:${index}` })
        .where('id', '=', id)
        .execute();
    }
    const active = await store.listActive();
    expect(active).toHaveLength(4);
    expect((await ownership.survey()).signature).toBe(ownership.signatureOf(active));
    const without = ownership.signatureOf(active.slice(1));
    expect(without).not.toBe(ownership.signatureOf(active));
  });
});
