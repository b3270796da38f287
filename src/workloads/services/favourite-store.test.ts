import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { actAs } from '../../platform/audit/actor.ts';
import { createFavouriteStore } from './favourite-store.ts';

describeEachDatabase('the store of favourite services', (open) => {
  test('keeps those of each user, once, until they are taken back or the user is deleted', async () => {
    const database = await open();
    const users = createUserStore(database);
    const [ada, bob] = await users.createMissing(['ada', 'bob']);
    const store = createFavouriteStore(database);
    for (const name of ['wiki', 'wiki', 'board']) await store.set(ada?.id ?? '', name, true);
    await store.set(bob?.id ?? '', 'wiki', true);
    await store.set(ada?.id ?? '', 'board', false);
    expect([...(await store.listOfUser(ada?.id ?? ''))]).toEqual(['wiki']);
    await users.delete(ada?.id ?? '');
    expect([...(await store.listOfUser(ada?.id ?? ''))]).toEqual([]);
    expect([...(await store.listOfUser(bob?.id ?? ''))]).toEqual(['wiki']);
  });

  test('tells when an app was last used: by its tokens, and by what was allowed in logins that ended', async () => {
    const database = await open();
    const [ada, bob] = await createUserStore(database).createMissing(['ada', 'bob']);
    const { kysely, audit } = database;
    for (const [id, client_id, created_at, last_used_at] of [
      ['a', 'service-wiki', 10, 20],
      ['b', 'service-board', 30, null],
    ] as const) {
      await kysely
        .insertInto('access_tokens')
        .values({
          ...{ id, client_id, created_at, last_used_at, user_id: ada?.id ?? '' },
          ...{ token_hash: id, kind: 'user', scopes: '[]', note: '' },
          ...{ service_name: null, server_id: null, session_id: null, made_by: null },
          ...{ code_hash: null, expires_at: null },
        })
        .execute();
    }
    const allow = (name: string, actor = 'ada') =>
      actAs({ kind: 'user', name: actor }, () =>
        audit.recordAlone({ action: 'oauth.authorize', target: { kind: 'client', name } }),
      );
    await allow('service-plot');
    await allow('service-wiki');
    await allow('service-secret', 'bob');
    await audit.catchUp();
    const uses = await createFavouriteStore(database).lastUsesOf({
      id: ada?.id ?? '',
      name: 'ada',
    });
    const recently = expect.toSatisfy((at: Date) => at.getTime() > 1_000);
    expect(Object.fromEntries(uses)).toEqual({
      'service-wiki': recently,
      'service-board': new Date(30),
      'service-plot': recently,
    });
    const none = await createFavouriteStore(database).lastUsesOf({ id: bob?.id ?? '', name: 'x' });
    expect(none.size).toBe(0);
  });
});
