import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { watchStatements } from '../../../test/support/statements.ts';
import { createSystemAccountStore } from '../../identity/users/system-account-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import type { PageEdge } from '../../platform/store/page-edge.ts';
import { createHomeSpaceStore } from './home-space-store.ts';
import { createHomeSpaceWatch } from './home-spaces.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('how full homes are', (open) => {
  test('is looked at while servers run, and listed from the fullest on, with those of which nothing is known', async () => {
    const database = await open();
    const users = createUserStore(database);
    const systemAccounts = createSystemAccountStore(database);
    const store = createServerStore(database);
    const homeSpaceStore = createHomeSpaceStore(database);
    for (const name of ['ada', 'bob', 'cleo', 'dora', 'eve']) {
      const { id } = await users.create({ name });
      await addServer(database, id, name === 'eve' ? 'stopped' : 'running');
      if (name === 'bob') await systemAccounts.give({ id }, 'robert');
    }
    await users.create({ name: 'without-server' });
    const running = await store.listActive();
    const used = new Map([
      ['ada', 10],
      ['robert', 30],
      ['cleo', 10],
    ]);
    await using spaces = createHomeSpaceWatch({
      config: { Spawner: { home_dir: '/home/{username}' }, directory: '/' } as never,
      spawner: {
        async homeSpace({ workingDirectory }) {
          const account = workingDirectory.replace('/home/', '');
          if (account === 'dora') throw new Error('the disk does not answer');
          return { totalBytes: 100, freeBytes: 100 - (used.get(account) ?? 0) };
        },
      },
      lifecycle: { units: () => running.map((server) => ({ server, state: 'running' as const })) },
      homeSpaceStore,
      log: pino({ level: 'silent' }),
    });
    await spaces.run();
    const list = async (edge?: PageEdge, onlyNames: 'all' | readonly string[] = 'all') => {
      const page = await homeSpaceStore.list(onlyNames, { limit: 2, edge });
      return {
        ...page,
        items: page.items.map(({ userName, space }) => `${userName} ${space?.usedBytes}`),
        keys: page.items.map(({ key }) => key),
      };
    };
    const first = await list();
    expect(first).toMatchObject({ items: ['bob 30', 'ada 10'], total: 5, isFirst: true });
    const second = await list({ side: 'after', key: first.keys.at(-1)! });
    expect(second).toMatchObject({ items: ['cleo 10', 'dora undefined'], isLast: false });
    const last = await list({ side: 'after', key: second.keys.at(-1)! });
    expect(last).toMatchObject({ items: ['eve undefined'], isLast: true });
    const before = await list({ side: 'before', key: last.keys[0]! });
    expect(before.items).toEqual(second.items);
    expect(await list(undefined, ['cleo', 'eve'])).toMatchObject({
      items: ['cleo 10', 'eve undefined'],
      total: 2,
    });

    // A home is looked at again, and that of a deleted user is forgotten.
    used.set('cleo', 40);
    await users.delete((await users.getByName('bob')).id);
    await spaces.run();
    expect((await list()).items).toEqual(['cleo 40', 'ada 10']);
  });

  test('is asked for by the same few statements however many there are', async () => {
    const database = await open();
    const users = createUserStore(database);
    const homeSpaceStore = createHomeSpaceStore(database);
    for (let at = 0; at < 30; at += 1) {
      const { id } = await users.create({ name: `user-${at}` });
      await addServer(database, id, 'running');
    }
    using watched = watchStatements();
    const statements = await watched.during(() => homeSpaceStore.list('all', { limit: 20 }));
    if (database.dialect === 'sqlite') expect(statements).toHaveLength(2);
  });
});
