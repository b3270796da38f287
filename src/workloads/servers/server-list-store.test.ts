import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { lastPage } from '../../platform/store/page-edge.ts';
import { createServerListStore, serverSorts } from './server-list-store.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('the list of servers', (open) => {
  test('has those that are not stopped or have failed, in every order, a page at a time', async () => {
    const database = await open();
    const users = createUserStore(database);
    const servers = createServerStore(database);
    await enterInstance(database, { id: 'near' });
    await enterInstance(database, { id: 'lost' });
    await endLease(database, 'lost');
    const failure = JSON.stringify({ message: 'It ended.' });
    for (const [userName, name, state, instance_id, failed, started_at, last_activity_at] of [
      ['ada', '', 'running', 'near', null, 50, 70],
      ['ada', 'gpu', 'running', 'lost', null, 60, 60],
      ['bob', '', 'stopped', null, failure, 10, null],
      ['carol', '', 'stopped', null, null, 10, null],
      ['dan', '', 'starting', 'near', null, 50, null],
    ] as const) {
      const user = (await users.findByName(userName)) ?? (await users.create({ name: userName }));
      const { id } = await servers.ensure(user.id, name, undefined);
      await database.kysely
        .updateTable('servers')
        .set({ state, instance_id, failure: failed, started_at, stopped_at: 55, last_activity_at })
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
    const read = async (more: object, filter: object = {}) => {
      const asked = { limit: 2, total: 4, sort: 'name', ...more } as const;
      return (await list.list({ ...all, ...filter }, asked)).items;
    };
    const page = async (...asked: Parameters<typeof read>) =>
      (await read(...asked)).map(({ name, userName }) => `${name}/${userName}`);
    const orders = {
      name: ['/ada', 'gpu/ada', '/bob', '/dan'],
      state: ['/bob', 'gpu/ada', '/dan', '/ada'],
      since: ['gpu/ada', '/bob', '/dan', '/ada'],
      activity: ['/ada', 'gpu/ada', '/dan', '/bob'],
    };
    for (const column of serverSorts) {
      for (const sort of [column, `-${column}`]) {
        const keys = sort === column ? orders[column] : orders[column].toReversed();
        const at = (await read({ sort, limit: 4 })).map(({ key }) => key);
        expect(await page({ sort }), sort).toEqual(keys.slice(0, 2));
        const after = { side: 'after', key: at[1] };
        expect(await page({ sort, edge: after }), sort).toEqual(keys.slice(2));
        const before = { side: 'before', key: at[3] };
        expect(await page({ sort, edge: before }), sort).toEqual(keys.slice(1, 3));
        expect(await page({ sort, edge: lastPage }), sort).toEqual(keys.slice(2));
        const none = { side: 'after', key: 'x,/ada' };
        expect(await page({ sort, edge: none }), sort).toEqual(keys.slice(0, 2));
      }
    }
    expect(await page({}, { state: 'failed' })).toEqual(['/bob']);
    expect(await page({}, { state: 'running' })).toEqual(['/ada']);
    expect(await page({}, { search: 'D' })).toEqual(['/ada', 'gpu/ada']);
    expect(await page({}, { userNames: ['dan'] })).toEqual(['/dan']);
    expect(await list.count({ ...all, userNames: [] })).toMatchObject({ all: 0 });
  });
});
