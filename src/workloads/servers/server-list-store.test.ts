import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { lastPage } from '../../platform/store/page-edge.ts';
import { createServerListStore, serverKey } from './server-list-store.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('the list of servers', (open) => {
  test('has those that are not stopped or have failed, by user, a page at a time', async () => {
    const database = await open();
    const users = createUserStore(database);
    const servers = createServerStore(database);
    await enterInstance(database, { id: 'near' });
    await enterInstance(database, { id: 'lost' });
    await endLease(database, 'lost');
    const failure = JSON.stringify({ message: 'It ended.' });
    for (const [userName, name, state, instance_id, failed] of [
      ['ada', '', 'running', 'near', null],
      ['ada', 'gpu', 'running', 'lost', null],
      ['bob', '', 'stopped', null, failure],
      ['carol', '', 'stopped', null, null],
      ['dan', '', 'starting', 'near', null],
    ] as const) {
      const user = (await users.findByName(userName)) ?? (await users.create({ name: userName }));
      const { id } = await servers.ensure(user.id, name, undefined);
      await database.kysely
        .updateTable('servers')
        .set({ state, instance_id, failure: failed })
        .where('id', '=', id)
        .execute();
    }
    const list = createServerListStore(database);
    const all = { search: '', userNames: 'all' } as const;
    const counts = await list.count(all);
    expect(counts).toEqual({
      all: 4,
      failed: 1,
      unreachable: 1,
      starting: 1,
      running: 1,
      stopping: 0,
    });
    const keys = ['/ada', 'gpu/ada', '/bob', '/dan'];
    const page = async (more: object, filter: object = {}) =>
      (await list.list({ ...all, ...filter }, { limit: 2, total: 4, ...more })).items.map(
        serverKey,
      );
    expect(await page({})).toEqual(keys.slice(0, 2));
    expect(await page({ edge: { side: 'after', key: 'gpu/ada' } })).toEqual(keys.slice(2));
    expect(await page({ edge: { side: 'before', key: '/dan' } })).toEqual(keys.slice(1, 3));
    expect(await page({ edge: lastPage })).toEqual(keys.slice(2));
    expect(await page({}, { state: 'failed' })).toEqual(['/bob']);
    expect(await page({}, { state: 'running' })).toEqual(['/ada']);
    expect(await page({}, { search: 'D' })).toEqual(['/ada', 'gpu/ada']);
    expect(await page({}, { userNames: ['dan'] })).toEqual(['/dan']);
    expect(await list.count({ ...all, userNames: [] })).toMatchObject({ all: 0 });
  });
});
