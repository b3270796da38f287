import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  readEvents,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

/** What clients written for JupyterHub's API rely on, beside what every other test asks of it. */
let hub: TestHub;
let names = 0;
beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      allow_named_servers: true,
      load_roles: [
        { name: 'operators', scopes: ['admin:users', 'tokens'], users: ['operator'] },
        { name: 'powerless', scopes: [] },
      ],
      services: [
        {
          name: 'wiki',
          url: 'http://127.0.0.1:9',
          api_token: 'wiki-service-token',
          info: { a: 1 },
        },
      ],
    },
    Proxy: { extra_routes: { '/docs/': { target: 'http://127.0.0.1:9' } } },
  });
});
afterAll(() => hub[Symbol.asyncDispose]());

/** A new user. */
async function newUser(): Promise<string> {
  names += 1;
  await createUsers(hub, `user${names}`);
  return `user${names}`;
}

const send = (method: string, path: string, body?: unknown, token = adminToken) =>
  callApi(hub, token, method, path, body);

const statusOf = async (...request: Parameters<typeof send>) => (await send(...request)).status;

test('the version is told with and without a slash at the end', async () => {
  const reported = await send('GET', '');
  expect(reported).toEqual({ status: 200, body: { version: '0.0.0-test' } });
  expect(await send('GET', '/')).toEqual(reported);
});

describe('groups', () => {
  test('are created all or none: an unknown member leaves no group behind', async () => {
    const name = await newUser();
    expect(await statusOf('POST', '/groups/half', { users: [name, 'no-such-user'] })).toBe(400);
    expect(await statusOf('GET', '/groups/half')).toBe(404);
    expect(await statusOf('POST', '/groups/half', { users: [name] })).toBe(201);
    expect((await send('GET', '/groups/half')).body).toMatchObject({ users: [name] });
  });

  test('are created all or none: one that exists keeps the others from being made', async () => {
    expect(await statusOf('POST', '/groups', { groups: ['there'] })).toBe(201);
    const refused = await send('POST', '/groups', { groups: ['not-yet', 'there'] });
    expect(refused).toMatchObject({
      status: 409,
      body: { message: expect.stringMatching(/there/) },
    });
    expect(await statusOf('GET', '/groups/not-yet')).toBe(404);
    const unknown = { groups: ['not-yet', 'nor-this'], users: ['no-such-user'] };
    expect(await statusOf('POST', '/groups', unknown)).toBe(400);
    expect(await statusOf('GET', '/groups/not-yet')).toBe(404);
    const both = await send('POST', '/groups', { groups: ['not-yet', 'nor-this', 'not-yet'] });
    expect(both).toMatchObject({ status: 201, body: [{ name: 'not-yet' }, { name: 'nor-this' }] });
  });

  test('keep their properties and members when a body is empty', async () => {
    const name = await newUser();
    await send('POST', '/groups/kept', { users: [name] });
    await send('PUT', '/groups/kept/properties', { colour: 'red' });
    for (const body of ['', '[]', '"text"', '5', 'null']) {
      const answer = await hub.api('/groups/kept/properties', adminToken, { method: 'PUT', body });
      expect(answer.status, body).toBe(400);
    }
    expect(await statusOf('DELETE', '/groups/kept/users')).toBe(400);
    expect((await send('GET', '/groups/kept')).body).toMatchObject({
      users: [name],
      properties: { colour: 'red' },
    });
    expect(await statusOf('PUT', '/groups/kept/properties', {})).toBe(200);
  });

  test('are not listed by a right that no group can have', async () => {
    const admin = await newUser();
    await send('PATCH', `/users/${admin}`, { admin: true });
    const token = await tokenOf(hub, admin, [`list:groups!user=${admin}`]);
    expect(await statusOf('GET', '/groups', undefined, token)).toBe(403);
  });
});

describe('a status is as JupyterHub has it', () => {
  test('stopping what never ran', async () => {
    const name = await newUser();
    expect(await statusOf('DELETE', `/users/${name}/server`)).toBe(204);
    expect(await statusOf('DELETE', `/users/${name}/server`, { remove: true })).toBe(400);
    expect(await statusOf('DELETE', `/users/${name}/servers/none`)).toBe(404);
    expect(await statusOf('DELETE', '/users/no-such-user/server')).toBe(404);
  });

  test('a start that fails, with the reason', async () => {
    await using broken = await createServerHub({ Spawner: { cmd: ['false'] } });
    await createUsers(broken, 'ann');
    const answer = await broken.api('/users/ann/server', adminToken, { method: 'POST' });
    expect(answer.status).toBe(500);
    const body = (await answer.json()) as Record<string, unknown>;
    expect(body).toMatchObject({
      code: 'spawn_failed',
      message: 'The server exited (code 1) before it was ready.',
    });
    // It is no defect of the hub, for whose log an id would be told.
    expect(body).not.toHaveProperty('error_id');
  });

  test('named servers while they are off', async () => {
    await using plain = await createServerHub();
    await createUsers(plain, 'ann');
    const answer = await plain.api('/users/ann/servers/lab', adminToken, { method: 'DELETE' });
    expect(answer.status).toBe(400);
  });

  test('following a server that is stopped', async () => {
    const name = await newUser();
    await send('PUT', `/users/${name}/servers/lab`, {});
    expect(await statusOf('GET', `/users/${name}/servers/lab/progress`)).toBe(404);
  });

  test('activity of the default server before its first start', async () => {
    const name = await newUser();
    const at = new Date(Date.now() - 5000).toISOString();
    const report = { last_activity: at, servers: { '': { last_activity: at } } };
    expect(await statusOf('POST', `/users/${name}/activity`, report)).toBe(200);
    expect((await send('GET', `/users/${name}`)).body).toMatchObject({ last_activity: at });
    const other = { servers: { lab: { last_activity: at } } };
    expect(await statusOf('POST', `/users/${name}/activity`, other)).toBe(400);
  });

  test('a token beyond its owner, or by a role that is not there', async () => {
    const name = await newUser();
    const tokens = `/users/${name}/tokens`;
    expect(await statusOf('POST', tokens, { scopes: ['admin:users'] })).toBe(400);
    expect(await statusOf('POST', tokens, { roles: ['admin'] })).toBe(400);
    expect(await statusOf('POST', tokens, { roles: ['no-such-role'] })).toBe(400);
    expect(await statusOf('POST', tokens, { scopes: ['no:such:scope'] })).toBe(400);
    const own = await tokenOf(hub, name);
    expect(await statusOf('POST', tokens, { scopes: ['admin:users'] }, own)).toBe(400);
  });

  test('a token by roles that allow nothing, which may do no more than they', async () => {
    const name = await newUser();
    for (const roles of [[], ['powerless'], ['powerless', 'powerless']]) {
      const made = await send('POST', `/users/${name}/tokens`, { roles });
      expect(made, JSON.stringify(roles)).toMatchObject({ status: 201, body: { roles: [] } });
      const token = String(made.body['token']);
      expect(await statusOf('GET', `/users/${name}/tokens`, undefined, token)).toBe(403);
    }
  });

  test('a token by the role of servers, which is for activity and for no server', async () => {
    const name = await newUser();
    const made = await send('POST', `/users/${name}/tokens`, { roles: ['server'] });
    expect(made.status).toBe(201);
    const scopes = ['read:users:activity', 'users:activity'];
    expect(made.body['scopes']).toEqual(scopes.map((scope) => `${scope}!user=${name}`));
    const token = String(made.body['token']);
    const report = { servers: { '': { last_activity: new Date().toISOString() } } };
    expect(await statusOf('POST', `/users/${name}/activity`, report, token)).toBe(200);
    const written = { scopes: ['access:servers!server'] };
    expect(await statusOf('POST', `/users/${name}/tokens`, written)).toBe(400);
  });

  test('a token for another user, whose existence is not revealed', async () => {
    const [own, other] = [await newUser(), await newUser()];
    const token = await tokenOf(hub, own);
    const refusals = await Promise.all(
      [other, 'no-such-user'].map((name) => send('POST', `/users/${name}/tokens`, {}, token)),
    );
    expect(refusals[0]?.status).toBe(403);
    expect(refusals[0]).toEqual(refusals[1]);
    expect(await statusOf('POST', '/users/no-such-user/tokens', {})).toBe(403);
    // What the owner may do is not told to those who may do less.
    const operator = await tokenOf(hub, 'operator');
    for (const scopes of [['shutdown'], ['admin:groups']]) {
      const refused = await send('POST', `/users/${own}/tokens`, { scopes }, operator);
      expect(refused.status).toBe(403);
    }
  });
});

describe('the default server', () => {
  test('is one of the servers too, with the empty name', async () => {
    const name = await newUser();
    await startUntilReady(hub, `/users/${name}/servers/`);
    const [short, long] = [`/users/${name}/server`, `/users/${name}/servers/`];
    expect((await send('GET', long)).body).toEqual((await send('GET', short)).body);
    for (const base of [hub.apiUrl, `${hub.url}hub/api`]) {
      const progress = await fetch(`${base}${long}/progress`, {
        headers: { authorization: `token ${adminToken}` },
      });
      expect(progress.status).toBe(200);
      expect((await readEvents(progress)).at(-1)).toMatchObject({ ready: true });
    }
    expect(await statusOf('DELETE', long)).toBe(204);
    expect((await send('GET', short)).body).toMatchObject({ stopped: true });
  });

  test('of others is as closed under this address', async () => {
    const [owner, foreignProcess] = [await newUser(), await newUser()];
    const token = await tokenOf(hub, foreignProcess);
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await statusOf(method, `/users/${owner}/servers/`, undefined, token)).toBe(404);
    }
  });
});

describe('lists', () => {
  test('of users come in the order of their creation', async () => {
    await using own = await createServerHub();
    for (const name of ['zoe', 'adam', 'mary']) await createUsers(own, name);
    const listed = async (query = '') => {
      const users = await (await own.api(`/users${query}`, adminToken)).json();
      return (users as { name: string }[]).map(({ name }) => name);
    };
    expect(await listed()).toEqual(['zoe', 'adam', 'mary']);
    expect(await listed('?sort=-id')).toEqual(['mary', 'adam', 'zoe']);
    expect(await listed('?sort=name')).toEqual(['adam', 'mary', 'zoe']);
    expect(await listed('?offset=1&limit=1')).toEqual(['adam']);
  });

  test('are as long as the operator lets pages be', async () => {
    await using own = await createServerHub({
      Hub: { api_page_default_limit: 2, api_page_max_limit: 3 },
    });
    await createUsers(own, 'a1', 'a2', 'a3', 'a4', 'a5');
    const envelope = { headers: { accept: 'application/jupyterhub-pagination+json' } };
    const pages = await own.api('/users', adminToken, envelope);
    expect(await pages.json()).toMatchObject({
      items: [{ name: 'a1' }, { name: 'a2' }],
      _pagination: { offset: 0, limit: 2, total: 5, next: { offset: 2, limit: 2 } },
    });
    for (const query of ['', '?limit=500']) {
      const bare = await (await own.api(`/users${query}`, adminToken)).json();
      expect(bare, query).toHaveLength(3);
    }
  });
});

describe('bodies', () => {
  test('expires_in of 0 means that a token does not expire', async () => {
    const tokens = `/users/${await newUser()}/tokens`;
    const made = await send('POST', tokens, { expires_in: 0 });
    expect(made).toMatchObject({ status: 201, body: { expires_at: null } });
    expect(await statusOf('POST', tokens, { expires_in: -1 })).toBe(400);
    await using strict = await createServerHub({ Hub: { token_expires_in_max_seconds: 3600 } });
    await createUsers(strict, 'ann');
    const limited = await strict.api('/users/ann/tokens', adminToken, {
      method: 'POST',
      body: JSON.stringify({ expires_in: 0 }),
    });
    const { expires_at } = (await limited.json()) as { expires_at: string };
    expect(Date.parse(expires_at)).toBeLessThanOrEqual(Date.now() + 3_600_000);
  });

  test('may say more than is needed, where that changes nothing', async () => {
    const name = await newUser();
    const more = { username: 'x', kind: 'y', roles_added: [] };
    expect(await statusOf('POST', `/users/${name}/tokens`, { note: 'a', username: name })).toBe(
      201,
    );
    expect(await statusOf('POST', '/users', { usernames: [`${name}a`], ...more })).toBe(201);
    expect(await statusOf('POST', `/users/${name}b`, { name: `${name}b`, ...more })).toBe(201);
    expect(await statusOf('POST', `/groups/${name}`, { name, users: [], roles: [] })).toBe(201);
    expect(await statusOf('POST', `/groups/${name}/users`, { users: [name], ...more })).toBe(200);
    expect(await statusOf('DELETE', `/users/${name}/server`, { remove: false, now: true })).toBe(
      204,
    );
  });

  test('are refused where a misspelling would do something else', async () => {
    const name = await newUser();
    const tokens = `/users/${name}/tokens`;
    for (const body of [{ expire_in: 60 }, { expiresIn: 60 }, { scope: [] }, { role: ['user'] }]) {
      const refused = await send('POST', tokens, body);
      expect(refused.status, JSON.stringify(body)).toBe(400);
      expect(String(refused.body['message'])).toContain('did you mean');
    }
    expect(await statusOf('PATCH', `/users/${name}`, { is_admin: true })).toBe(400);
    expect(await statusOf('POST', '/shutdown', { server: false })).toBe(400);
    await send('PUT', `/users/${name}/servers/lab`, {});
    expect(await statusOf('PATCH', `/users/${name}/servers/lab`, { nane: 'other' })).toBe(400);
  });

  test('of a start are checked also where options stand beside a name', async () => {
    const lab = `/users/${await newUser()}/servers/lab`;
    expect(await statusOf('POST', lab, { display_name: 5, user_options: {} })).toBe(400);
    expect(await statusOf('POST', lab, { display_name: ' blanks ' })).toBe(400);
    expect(await statusOf('POST', lab, { user_options: 'text' })).toBe(400);
    expect(await statusOf('GET', lab)).toBe(404);
  });
});

describe('a named server', () => {
  test('is renamed while it is stopped', async () => {
    const name = await newUser();
    const lab = `/users/${name}/servers/lab`;
    await startUntilReady(hub, lab, { display_name: 'My lab' });
    expect(await statusOf('PATCH', lab, { name: 'bench' })).toBe(400);
    expect(await statusOf('DELETE', lab)).toBe(204);
    const renamed = await send('PATCH', lab, { name: 'bench' });
    expect(renamed).toMatchObject({
      status: 200,
      body: { name: 'bench', display_name: 'My lab', url: `/user/${name}/bench/` },
    });
    expect(await statusOf('GET', lab)).toBe(404);
    await startUntilReady(hub, `/users/${name}/servers/bench`);
    const at = (server: string) =>
      fetch(`${hub.url}user/${name}/${server}/`, { redirect: 'manual' });
    // Where it was, nothing runs; where it is, one is asked to log in.
    expect((await at('lab')).status).toBe(424);
    expect((await at('bench')).status).toBe(401);
  });

  test('is not renamed to what cannot be its name, or is taken', async () => {
    const name = await newUser();
    const lab = `/users/${name}/servers/lab`;
    for (const each of ['lab', 'other']) await send('PUT', `/users/${name}/servers/${each}`, {});
    for (const wrong of ['', 'A', 'a/b', '..', '%2e', 'a b']) {
      expect(await statusOf('PATCH', lab, { name: wrong }), wrong).toBe(400);
    }
    expect(await statusOf('PATCH', lab, { name: 'other' })).toBe(409);
    expect(await statusOf('PATCH', lab, { name: 'lab' })).toBe(200);
    await createUsers(hub, `${name}-rival`);
    expect(await statusOf('PATCH', lab, { name: 'rival' })).toBe(409);
    const foreignProcess = await tokenOf(hub, await newUser());
    expect(await statusOf('PATCH', lab, { name: 'mine' }, foreignProcess)).toBe(404);
    expect(await statusOf('GET', lab)).toBe(200);
  });

  test('takes no token along that was made for its old name', async () => {
    const name = await newUser();
    const lab = `/users/${name}/servers/lab`;
    await send('PUT', lab, {});
    const rights = ['read:servers', 'start:servers'].map((scope) => `${scope}!server=${name}/lab`);
    const narrow = await tokenOf(hub, name, rights);
    expect(await statusOf('GET', lab, undefined, narrow)).toBe(200);
    expect(await statusOf('PATCH', lab, { name: 'bench' }, narrow)).toBe(403);
    await send('PATCH', lab, { name: 'bench' });
    expect(await statusOf('GET', `/users/${name}/servers/bench`, undefined, narrow)).toBe(404);
  });
});

describe('what docs/how-to/run-jupyter.md says to be different', () => {
  test('is so', async () => {
    const [name, other] = [await newUser(), await newUser()];
    const server = `/users/${name}/server`;
    await startUntilReady(hub, server);
    expect((await send('DELETE', server)).status).toBe(204);
    expect((await send('POST', server)).body).toMatchObject({ full_name: `${name}/` });
    expect(await statusOf('PUT', `/users/${name}/servers/Any%20text`)).toBe(400);
    const limited = await tokenOf(hub, name, ['tokens!user']);
    const more = { scopes: ['read:users!user'] };
    expect(await statusOf('POST', `/users/${name}/tokens`, more, limited)).toBe(403);
    expect(await statusOf('PATCH', `/users/${name}`, { name: other })).toBe(409);
    for (const query of ['offset=-1', 'limit=-1']) {
      expect(await statusOf('GET', `/users?${query}`), query).toBe(400);
    }
    const service = await send('POST', '/services/new');
    expect(service.body).toMatchObject({ api_token: expect.stringMatching(/^hub_/) });
    const taken = { oauth_client_id: 'service-wiki' };
    expect(await statusOf('POST', '/services/newer', taken)).toBe(409);
    expect((await send('GET', '/info')).body).toMatchObject({
      node: expect.any(String),
      authenticators: [{ name: 'dummy' }],
    });
  });
});

describe('programs in browsers', () => {
  test('may ask which headers they can send, at every address of the API', async () => {
    for (const path of ['/', '/users', '/users/ada/server', '/user', '/groups/x/users']) {
      for (const base of [hub.apiUrl, `${hub.url}hub/api`]) {
        const answer = await fetch(`${base}${path}`, {
          method: 'OPTIONS',
          headers: { origin: 'https://elsewhere.example' },
        });
        expect(answer.status, path).toBe(200);
        expect(answer.headers.get('access-control-allow-headers')).toBe(
          'accept, content-type, authorization',
        );
        expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      }
    }
    const nowhere = await fetch(`${hub.apiUrl}/nowhere`, { method: 'OPTIONS' });
    expect(nowhere.status).toBe(404);
  });
});

describe('GET /user', () => {
  test('shows a service what it is', async () => {
    const own = (await send('GET', '/user', undefined, 'wiki-service-token')).body;
    expect(own).toMatchObject({
      kind: 'service',
      name: 'wiki',
      admin: false,
      roles: [],
      url: 'http://127.0.0.1:9',
      prefix: '/services/wiki/',
      command: [],
      pid: null,
      info: { a: 1 },
      display: true,
      scopes: [],
      token_id: null,
    });
  });
});

describe('operations for which the hub has no use', () => {
  test('say so, and what to use instead', async () => {
    for (const [method, path] of [
      ['GET', '/authorizations/token/some-secret'],
      ['POST', '/authorizations/token'],
      ['GET', '/authorizations/cookie/some-cookie/some-secret'],
    ] as const) {
      const answer = await send(method, path, method === 'POST' ? {} : undefined);
      expect(answer, path).toMatchObject({
        status: 410,
        body: { code: 'gone', hint: expect.stringMatching(/api\/|OAuth/) },
      });
      expect(JSON.stringify(answer.body)).not.toContain('some-secret');
    }
    expect(await send('PATCH', '/proxy', { api_url: 'http://127.0.0.1:9' })).toMatchObject({
      status: 409,
      body: { hint: expect.stringContaining('Hub.gateways') },
    });
    for (const body of [undefined, [], 'text']) {
      expect(await statusOf('PATCH', '/proxy', body), JSON.stringify(body)).toBe(400);
    }
  });
});

test('operations that do nothing are not there', async () => {
  const name = await newUser();
  expect(await statusOf('POST', `/users/${name}/admin-access`)).toBe(404);
});

describe('POST /proxy', () => {
  test('answers without a body once the table is right', async () => {
    expect(await send('POST', '/proxy')).toEqual({ status: 200, body: undefined });
  });
});

describe('GET /proxy', () => {
  test('names the owners of routes as JupyterHub does, the hub among them', async () => {
    const name = await newUser();
    await startUntilReady(hub, `/users/${name}/servers/lab`);
    const routes = (await send('GET', '/proxy')).body;
    expect(routes['/']).toMatchObject({
      routespec: '/',
      target: new URL(hub.apiUrl).origin,
      data: { hub: true },
    });
    expect(routes['/services/wiki/']).toMatchObject({ data: { service: 'wiki' } });
    expect(routes[`/user/${name}/lab/`]).toMatchObject({
      routespec: `/user/${name}/lab/`,
      data: { user: name, server_name: 'lab' },
    });
    expect(routes['/docs/']).toMatchObject({ data: { extra: true } });
  });

  test('comes in pages', async () => {
    const envelope = { headers: { accept: 'application/jupyterhub-pagination+json' } };
    const all = Object.keys((await send('GET', '/proxy')).body);
    const seen: string[] = [];
    for (let offset = 0; offset < all.length; offset += 1) {
      const answer = await hub.api(`/proxy?limit=1&offset=${offset}`, adminToken, envelope);
      const page = (await answer.json()) as { items: object; _pagination: { total: number } };
      expect(page._pagination.total).toBe(all.length);
      seen.push(...Object.keys(page.items));
    }
    expect(seen).toEqual(all);
    expect(all.length).toBeGreaterThan(2);
  });
});
