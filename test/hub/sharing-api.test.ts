import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { adminToken, callApi, createUsers, tokenOf } from '../support/server-hub.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

// What JupyterHub answers, case by case, with the tokens of a user who holds some scopes and no others.

let hub: TestHub;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      allow_named_servers: true,
      custom_scopes: { 'custom:lab:read': { description: 'Reads in the lab.' } },
      load_groups: [
        { name: 'crew', users: ['bob', 'dora'] },
        { name: 'others', users: ['carol', 'dora'] },
        { name: 'empty' },
      ],
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: { cmd: ['sleep', '1000'] },
  });
  await createUsers(hub, 'alice', 'bob', 'carol', 'dora', 'erik', 'root');
  await call(adminToken, 'PUT', '/users/alice/servers/lab', {});
});
afterAll(() => hub[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const path of ['/shares/alice/', '/share-codes/alice/', '/shares/alice/lab']) {
    expect((await call(adminToken, 'DELETE', path)).status).toBe(204);
  }
});

interface ShareModel {
  readonly id: string;
  readonly server: { readonly name: string };
  readonly scopes: readonly string[];
  readonly user: { readonly name: string } | null;
  readonly group: { readonly name: string } | null;
}

/** All that an answer may have in it. */
interface Body extends ShareModel {
  readonly items: readonly ShareModel[];
  readonly _pagination: { readonly total: number; readonly next: { readonly url: string } };
  readonly hint: string;
  readonly code: string;
  readonly accept_url: string;
  readonly full_accept_url: string;
  readonly expires_at: string;
  readonly created_at: string;
}

const nameOf = ({ user, group }: ShareModel) => (user ?? group)?.name;

const call = (
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: Body }> => callApi(hub, token, method, path, body);

/** A token of an administrator that holds these scopes alone. */
const holding = (scopes: string): Promise<string> => tokenOf(hub, 'root', scopes.split(','));

const grant = (body: object) => call(adminToken, 'POST', '/shares/alice/', body);

describe('sharing', () => {
  const all = 'shares,read:users:name,read:groups:name';
  const bob = { user: 'bob' };
  const access = 'access:servers!server=alice/';
  test.each<[string, object, number]>([
    [all, bob, 200],
    [all, { ...bob, scopes: null }, 200],
    [all, { ...bob, scopes: [] }, 200],
    ['shares', bob, 403],
    ['shares,read:users:name!user=carol', bob, 403],
    ['shares,read:users:name!group=crew', bob, 200],
    [
      'shares!server=alice/,servers!server=alice/,read:users:name!user=bob',
      { ...bob, scopes: ['read:servers!server=alice/', access] },
      200,
    ],
    [all, { group: 'crew', scopes: ['read:servers!server=other/'] }, 400],
    [all, { group: 'crew', scopes: ['access:servers!user=alice'] }, 400],
    [all, { group: 'crew', scopes: ['access:servers!server'] }, 400],
    [
      'shares,access:servers,read:groups:name',
      { group: 'crew', scopes: ['admin:servers!server=alice/'] },
      403,
    ],
    [all, {}, 400],
    [all, { user: 'nosuchuser' }, 400],
    [all, { group: 'nosuchgroup' }, 400],
    [all, { user: 'bob', group: 'crew' }, 400],
    [all, { user: null, group: 'crew' }, 200],
    [all, { user: 'alice' }, 400],
    [all, { ...bob, scopes: ['nonsense'] }, 400],
    [all, { ...bob, scopes: ['inherit'] }, 400],
    [all, { ...bob, scopes: ['read:users'] }, 400],
    [`${all},tokens`, { ...bob, scopes: ['tokens'] }, 400],
    [all, { ...bob, scopes: ['custom:lab:read'] }, 403],
    [all, { ...bob, more: 1 }, 400],
    [all, { user: 3 }, 400],
    ['read:shares,read:users:name', bob, 403],
    ['shares!user=carol,read:users:name', bob, 404],
    ['shares!server=alice/lab,read:users:name', bob, 404],
  ])('with %s of %j is answered with %i', async (scopes, body, status) => {
    const answer = await call(await holding(scopes), 'POST', '/shares/alice/', body);
    expect(answer).toMatchObject({ status });
    const { total } = (await call(adminToken, 'GET', '/shares/alice/')).body._pagination;
    expect(total).toBe(status === 200 ? 1 : 0);
  });

  test('shows the share as JupyterHub does', async () => {
    const { body } = await grant({ ...bob, scopes: ['servers', 'access:servers'] });
    expect(body).toEqual({
      server: {
        user: { name: 'alice' },
        name: '',
        url: '/user/alice/',
        full_url: `${hub.url}user/alice/`,
        ready: false,
      },
      scopes: [access, 'servers!server=alice/'],
      user: { name: 'bob' },
      group: null,
      kind: 'user',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  test('adds to what is shared, and a custom scope can be part of it', async () => {
    const first = await grant(bob);
    const second = await grant({ ...bob, scopes: ['custom:lab:read'] });
    expect(second.body.scopes).toEqual([access, 'custom:lab:read!server=alice/']);
    expect(second.body.created_at).toBe(first.body.created_at);
    expect((await grant(bob)).body).toEqual(second.body);
  });

  test('says what the caller lacks', async () => {
    const token = await holding('shares,read:users:name');
    const scopes = ['servers', 'access:servers'];
    const { body } = await call(token, 'POST', '/shares/alice/', { ...bob, scopes });
    expect(body.hint).toContain('servers!server=alice/');
    expect(body.hint).not.toContain('access:servers');
  });

  test.each(['/shares/nosuchuser/', '/shares/alice/nosuchserver', '/shares/nosuchuser/lab'])(
    'finds nothing at %s',
    async (path) => {
      expect((await call(adminToken, 'POST', path, bob)).status).toBe(404);
      expect((await call(adminToken, 'GET', path)).status).toBe(404);
    },
  );

  test('of two at once, both count', async () => {
    const scopes = ['start:servers', 'read:servers', 'delete:servers', 'access:servers'];
    const answers = await Promise.all(scopes.map((scope) => grant({ ...bob, scopes: [scope] })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const { items } = (await call(adminToken, 'GET', '/shares/alice/')).body;
    expect(items).toHaveLength(1);
    expect(items[0]?.scopes).toHaveLength(4);
  });

  test('with a group that is deleted meanwhile leaves nothing behind', async () => {
    await call(adminToken, 'POST', '/groups/fleeting', {});
    const [, shared] = await Promise.all([
      call(adminToken, 'DELETE', '/groups/fleeting'),
      grant({ group: 'fleeting' }),
    ]);
    expect([200, 400, 404, 409]).toContain(shared.status);
    expect((await call(adminToken, 'GET', '/shares/alice/')).body.items).toEqual([]);
  });
});

describe('ending', () => {
  const all = 'shares,read:users:name,read:groups:name';
  test.each<[string, string[] | undefined, object, string[] | number]>([
    ['read:shares', undefined, { user: 'bob' }, 403],
    ['shares', undefined, { user: 'bob' }, []],
    ['shares!user=alice', undefined, { group: 'crew' }, []],
    [all, ['read:servers'], { user: 'bob' }, []],
    [all, ['access:servers'], { user: 'bob', scopes: ['read:servers'] }, ['access:servers']],
    [
      all,
      ['access:servers', 'read:servers'],
      { user: 'bob', scopes: ['read:servers!server=alice/'] },
      ['access:servers'],
    ],
    [all, undefined, { user: 'nosuchuser' }, []],
    [all, undefined, { group: 'nosuchgroup' }, []],
    [all, undefined, {}, 400],
    [all, undefined, { user: 'bob', group: 'crew' }, 400],
  ])('with %s what is shared as %j by %j leaves %j', async (scopes, before, body, left) => {
    if (before !== undefined) expect((await grant({ ...body, scopes: before })).status).toBe(200);
    const answer = await call(await holding(scopes), 'PATCH', '/shares/alice/', body);
    if (typeof left === 'number') expect(answer.status).toBe(left);
    else if (left.length === 0) expect([answer.status, answer.body]).toEqual([200, {}]);
    else {
      expect(answer.status).toBe(200);
      expect(answer.body.scopes).toEqual(left.map((name) => `${name}!server=alice/`));
    }
  });

  test.each([
    ['shares', 204],
    ['shares!user=alice', 204],
    ['shares!server=alice/', 204],
    ['read:shares', 403],
    ['shares!server=alice/other', 404],
    ['shares!user=other', 404],
  ])('all at once with %s is answered with %i', async (scopes, status) => {
    await grant({ user: 'bob' });
    await grant({ group: 'crew' });
    expect((await call(await holding(scopes), 'DELETE', '/shares/alice/')).status).toBe(status);
    const { items } = (await call(adminToken, 'GET', '/shares/alice/')).body;
    expect(items).toHaveLength(status === 204 ? 0 : 2);
  });
});

describe('lists', () => {
  test.each([
    ['shares', '/shares/alice/', 200],
    ['read:shares', '/shares/alice/', 200],
    ['read:shares!user=alice', '/shares/alice/', 200],
    ['read:shares!server=alice/', '/shares/alice/', 200],
    ['read:users:shares', '/shares/alice/', 403],
    ['read:shares', '/shares/alice', 200],
    ['read:shares!user=alice', '/shares/alice', 200],
    ['read:shares!user=other', '/shares/alice', 404],
    ['read:shares!server=alice/', '/shares/alice', 404],
    ['read:users:shares', '/shares/alice', 403],
    ['read:shares', '/share-codes/alice', 200],
    ['read:shares!server=alice/', '/share-codes/alice/', 200],
    ['read:shares!server=alice/', '/share-codes/alice', 404],
    ['read:users:shares', '/share-codes/alice', 403],
    ['users:shares', '/share-codes/alice/', 403],
  ])('with %s, %s is answered with %i', async (scopes, path, status) => {
    for (const recipient of [{ user: 'bob' }, { group: 'crew' }]) await grant(recipient);
    await call(adminToken, 'POST', '/shares/alice/lab', { user: 'carol' });
    for (let made = 0; made < 2; made += 1) {
      await call(adminToken, 'POST', '/share-codes/alice/', {});
    }
    const answer = await call(await holding(scopes), 'GET', path);
    expect(answer.status).toBe(status);
    if (status !== 200) return;
    const { items, _pagination: page } = answer.body;
    if (path.startsWith('/share-codes')) {
      expect(items).toHaveLength(2);
      for (const item of items) {
        expect(item).toMatchObject({ id: expect.stringMatching(/^sc_/), exchange_count: 0 });
        expect(item).not.toHaveProperty('code');
      }
    } else {
      const names = items.map(nameOf);
      expect(names).toEqual(path.endsWith('/') ? ['bob', 'crew'] : ['bob', 'crew', 'carol']);
    }
    expect(page).toEqual({ offset: 0, limit: 200, total: items.length, next: null });
  });

  test('come in pages', async () => {
    for (const user of ['bob', 'carol', 'dora']) await grant({ user });
    const first = (await call(adminToken, 'GET', '/shares/alice/?limit=2')).body;
    expect(first.items.map(nameOf)).toEqual(['bob', 'carol']);
    expect(first._pagination).toMatchObject({ total: 3, next: { offset: 2, limit: 2 } });
    const next = new URL(first._pagination.next.url);
    const path = next.pathname.replace('/hub/api', '') + next.search;
    const second = (await call(adminToken, 'GET', path)).body;
    expect(second.items.map(nameOf)).toEqual(['dora']);
  });

  test.each(['/shares/nosuchuser', '/shares/nosuchuser/', '/share-codes/nosuchuser'])(
    'there is no %s',
    async (path) => expect((await call(adminToken, 'GET', path)).status).toBe(404),
  );

  test.each([
    ['POST', '/shares/alice'],
    ['PATCH', '/shares/alice'],
    ['DELETE', '/shares/alice'],
    ['POST', '/share-codes/alice'],
    ['DELETE', '/share-codes/alice'],
  ])('%s %s needs a server', async (method, path) => {
    expect((await call(adminToken, method, path)).status).toBe(405);
  });

  test('of a user show what groups share too, and of a group its own', async () => {
    await grant({ group: 'crew' });
    await call(adminToken, 'POST', '/shares/alice/lab', { group: 'others' });
    for (const user of ['dora', 'erik']) {
      await call(adminToken, 'POST', '/shares/alice/lab', { user });
    }
    const serversOf = async (path: string) => {
      const { items } = (await call(adminToken, 'GET', `${path}/shared`)).body;
      return items.map(({ server }) => server.name).sort();
    };
    expect(await serversOf('/users/bob')).toEqual(['']);
    expect(await serversOf('/users/carol')).toEqual(['lab']);
    expect(await serversOf('/users/dora')).toEqual(['', 'lab', 'lab']);
    expect(await serversOf('/users/erik')).toEqual(['lab']);
    expect(await serversOf('/groups/crew')).toEqual(['']);
    expect(await serversOf('/groups/empty')).toEqual([]);
    for (const path of ['/users/nosuchuser/shared', '/groups/nosuchgroup/shared']) {
      expect((await call(adminToken, 'GET', path)).status).toBe(404);
    }
  });
});

describe('what is shared with someone', () => {
  test.each([
    ['users', 'users', 403, 403],
    ['users', 'read:users', 403, 403],
    ['users', 'read:users:shares!user=bob', 200, 403],
    ['users', 'users:shares!user=bob', 200, 204],
    ['users', 'users:shares!user=other', 404, 404],
    ['groups', 'groups', 403, 403],
    ['groups', 'read:groups', 403, 403],
    ['groups', 'read:groups:shares!group=crew', 200, 403],
    ['groups', 'groups:shares!group=crew', 200, 204],
    ['groups', 'groups:shares!group=other', 404, 404],
  ])('as %s, with %s: read %i, ended %i', async (kind, scopes, read, ended) => {
    const recipient = kind === 'users' ? { user: 'bob' } : { group: 'crew' };
    await grant(recipient);
    const path = `/${kind}/${kind === 'users' ? 'bob' : 'crew'}/shared`;
    const token = await holding(scopes);
    expect((await call(token, 'GET', `${path}/alice/`)).status).toBe(read);
    expect((await call(token, 'DELETE', `${path}/alice/`)).status).toBe(ended);
    await call(adminToken, 'PATCH', '/shares/alice/', recipient);
    for (const owner of ['alice', 'nosuchname']) {
      const again = await call(token, 'GET', `${path}/${owner}/`);
      expect(again.status).toBe(read === 200 ? 404 : read);
      const ending = await call(token, 'DELETE', `${path}/${owner}/`);
      expect(ending.status).toBe(ended === 204 ? 404 : ended);
    }
  });

  test.each(['users', 'groups'])('there is nothing of %s that do not exist', async (kind) => {
    const token = await holding(`${kind}:shares`);
    for (const method of ['GET', 'DELETE']) {
      const path = `/${kind}/nosuchname/shared/alice/`;
      expect((await call(token, method, path)).status).toBe(404);
    }
  });

  test('is not left for the whole group by one of its members', async () => {
    await grant({ group: 'crew' });
    const token = await tokenOf(hub, 'bob');
    expect((await call(token, 'DELETE', '/groups/crew/shared/alice/')).status).toBe(403);
    expect((await call(token, 'DELETE', '/users/bob/shared/alice/')).status).toBe(404);
  });
});

describe('codes', () => {
  const post = async (token: string, body: unknown) =>
    call(token, 'POST', '/share-codes/alice/', body);

  test.each<[string, object, number]>([
    ['shares', {}, 200],
    ['shares!user=other', {}, 404],
    [
      'shares!server=alice/,servers!server=alice/',
      { scopes: ['read:servers!server=alice/', 'access:servers!server=alice/'] },
      200,
    ],
    ['shares', { scopes: ['read:servers!server=other/'] }, 400],
    ['shares,access:servers', { scopes: ['admin:servers!server=alice/'] }, 403],
    ['shares', { expires_in: 'notanumber' }, 400],
    ['shares', { expires_in: -1 }, 400],
    ['shares', { expires_in: 59 }, 400],
    ['shares', { expires_in: 60 }, 200],
    ['shares', { expires_in: 31_536_000 }, 200],
    ['shares', { expires_in: 31_536_001 }, 400],
    ['shares', { user: 'bob' }, 400],
  ])('made with %s by %j: %i', async (scopes, body, status) => {
    const answer = await post(await holding(scopes), body);
    expect(answer).toMatchObject({ status });
    if (status !== 200) return;
    const { code, accept_url, full_accept_url, expires_at, created_at } = answer.body;
    expect(code).toMatch(/^[\w-]{43}$/);
    expect(accept_url).toBe(`/hub/accept-share?code=${code}`);
    expect(full_accept_url).toBe(`${hub.url}hub/accept-share?code=${code}`);
    const seconds = 'expires_in' in body ? Number(body.expires_in) : 86_400;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBeGreaterThan(seconds * 1000 - 5000);
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBeLessThan(seconds * 1000 + 5000);
  });

  test('need no body', async () => {
    expect((await call(adminToken, 'POST', '/share-codes/alice/')).status).toBe(200);
  });

  test.each<[string, (made: { id: string; code: string }) => string, number, number]>([
    ['shares', () => '', 204, 0],
    ['shares', ({ id }) => `?id=${id}`, 204, 1],
    ['shares!server=alice/', ({ code }) => `?code=${code}`, 204, 1],
    ['shares!user=other', () => '', 404, 2],
    ['read:shares', ({ code }) => `?code=${code}`, 403, 2],
    ['shares', () => '?id=invalid', 404, 2],
    ['shares', () => '?id=sc_9999', 404, 2],
    ['shares', () => '?code=nomatch', 404, 2],
  ])('deleted with %s by %s: %i', async (scopes, queryOf, status, left) => {
    const { body: made } = await post(adminToken, {});
    await post(adminToken, {});
    const path = `/share-codes/alice/${queryOf(made)}`;
    expect((await call(await holding(scopes), 'DELETE', path)).status).toBe(status);
    const { items } = (await call(adminToken, 'GET', '/share-codes/alice/')).body;
    expect(items).toHaveLength(left);
    if (left === 1) expect(items[0]?.id).not.toBe(made.id);
  });

  test('are not deleted by way of another server', async () => {
    const { body: made } = await post(adminToken, {});
    const path = `/share-codes/alice/lab?id=${made.id}`;
    expect((await call(adminToken, 'DELETE', path)).status).toBe(404);
  });

  test('have a limit for each server', async () => {
    for (let count = 0; count < 100; count += 1) {
      expect((await post(adminToken, {})).status).toBe(200);
    }
    expect((await post(adminToken, {})).status).toBe(409);
    const page = (await call(adminToken, 'GET', '/share-codes/alice/?limit=1000')).body;
    expect(page.items).toHaveLength(100);
  });
});
