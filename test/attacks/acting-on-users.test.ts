import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { submitTo } from '../support/pages.ts';
import { asAdmin, call, createPopulatedHub } from '../support/populated-hub.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import type { TestHubConfig } from '../support/test-hub.ts';

function declareActivityAttacks(configure: () => Promise<TestHubConfig>) {
  test('an empty report stops the recording of no other user', async () => {
    await using hub = await createPopulatedHub(await configure(), ['eve', 'victim']);
    const report = (name: 'eve' | 'victim', body: unknown) =>
      call(hub, hub.tokens[name], `/users/${name}/activity`, 'POST', body);
    const reportedAtMs = Date.now();
    const last_activity = new Date(reportedAtMs).toISOString();
    expect((await report('victim', { last_activity })).status).toBe(200);
    const absurd = ['9999-01-01T00:00:00Z', '2026-02-30T00:00:00Z', '+275760-09-13T00:00:00.001Z'];
    for (const body of [{ servers: {} }, ...absurd.map((time) => ({ last_activity: time }))]) {
      expect((await report('eve', body)).status, JSON.stringify(body)).toBe(400);
    }
    const victim = await asAdmin(hub, '/users/victim');
    expect(Date.parse(String(victim['last_activity']))).toBeGreaterThanOrEqual(reportedAtMs);
  });
}

describe('activity (SQLite)', () => declareActivityAttacks(async () => ({})));

describe.skipIf(!hasPostgres())('activity (PostgreSQL)', () => {
  const cluster = usePostgres();
  declareActivityAttacks(async () => ({ Hub: { database_url: await cluster().createDatabase() } }));
});

const courseScopes = [
  'groups!group=course',
  'admin:users!group=course',
  'tokens!group=course',
  'servers!group=course',
  'access:servers!group=course',
];

const courseHub = {
  Hub: {
    load_groups: [{ name: 'course', users: ['bob', 'tea'] }],
    load_roles: [
      { name: 'lead', scopes: courseScopes, users: ['gina'] },
      { name: 'grader', scopes: ['custom:grades'], users: ['tea'] },
      { name: 'culler', scopes: ['servers', 'admin:users'], services: ['culler'] },
      { name: 'list-keeper', scopes: ['groups', 'read:users'], services: ['list-keeper'] },
    ],
    custom_scopes: { 'custom:grades': { description: 'Grade.' } },
    services: [
      { name: 'culler', api_token: 'culler-token' },
      { name: 'list-keeper', api_token: 'list-keeper-token' },
    ],
  },
  Authenticator: { admin_users: ['ada'], allowed_users: ['bob', 'tea', 'gina', 'victim'] },
};

const courseUsers = ['ada', 'bob', 'gina', 'tea', 'victim'] as const;

describe('who looks after a group', () => {
  test('brings neither users nor administrators under their power by adding them', async () => {
    await using hub = await createPopulatedHub(courseHub, courseUsers);
    const asGina = (path: string, method: string, body?: unknown) =>
      call(hub, hub.tokens.gina, path, method, body);
    for (const name of ['victim', 'ada']) {
      const added = await asGina('/groups/course/users', 'POST', { users: [name] });
      expect(added.status, name).toBe(403);
      expect((await asGina(`/users/${name}/invitation`, 'POST')).status).toBe(404);
    }
    // Not by one who may keep the lists of all groups either.
    const policy = await call(hub, 'list-keeper-token', '/groups/course/users', 'POST', {
      users: ['victim'],
    });
    expect(policy.status).toBe(403);
    expect((await asGina('/groups/course/users', 'POST', { users: ['bob'] })).status).toBe(200);
    await asAdmin(hub, '/groups/free', 'POST');
    const free = await call(hub, 'list-keeper-token', '/groups/free/users', 'POST', {
      users: ['victim'],
    });
    expect(free.status).toBe(200);
    await asAdmin(hub, '/groups/course/users', 'POST', { users: ['victim'] });
    expect((await asGina('/users/victim/tokens', 'GET')).status).toBe(200);
  });

  test('does nothing to a member who may do more', async () => {
    await using hub = await createPopulatedHub(courseHub, courseUsers);
    await asAdmin(hub, '/groups/course/users', 'POST', { users: ['ada'] });
    const browser = await hub.logIn('ada');
    const { api_tokens: tokens } = await asAdmin(hub, '/users/ada/tokens');
    const [{ id }] = tokens as [{ id: string }];
    const { sessions } = await asAdmin(hub, '/users/ada/sessions');
    const [session] = sessions as [{ id: string }];
    const auditEvents: readonly (readonly [method: string, path: string, body?: unknown])[] = [
      ['DELETE', '/users/ada/invitation'],
      ['PATCH', '/users/ada', { name: 'eda' }],
      ['DELETE', '/users/ada'],
      ['POST', '/users/ada/tokens', { scopes: ['access:servers!user=ada'] }],
      ['DELETE', `/users/ada/tokens/${id}`],
      ['DELETE', '/users/ada/sessions'],
      ['DELETE', `/users/ada/sessions/${session.id}`],
      ['POST', '/users/ada/server'],
      ['DELETE', '/users/ada/server'],
      ['PUT', '/users/ada/servers/lab'],
      ['POST', '/users/ada/servers/lab'],
      ['PATCH', '/users/ada/servers/lab', { display_name: 'Lab' }],
      ['DELETE', '/users/ada/servers/lab'],
    ];
    for (const [method, path, body] of auditEvents) {
      const { status } = await call(hub, hub.tokens.gina, path, method, body);
      expect(status, `${method} ${path}`).toBe(403);
    }
    expect((await call(hub, hub.tokens.ada, '/users')).status).toBe(200);
    expect((await browser.open(`${hub.url}hub/account`)).status).toBe(200);
    // The same for the pages, and still no obstacle for what may be done.
    const own = await call(hub, hub.tokens.gina, '/users/bob/sessions', 'DELETE');
    expect(own.status).toBe(204);
    const culled = await call(hub, 'culler-token', '/users/ada/server', 'DELETE');
    expect(culled.status).toBe(204);
  });
});

test('deletes users who may do more, but none whose rights come back with the name', async () => {
  await using hub = await createPopulatedHub(courseHub, courseUsers);
  await asAdmin(hub, '/roles/helper', 'POST', { scopes: ['custom:grades'] });
  await asAdmin(hub, '/roles/helper/assignments', 'POST', { users: ['victim'] });
  await asAdmin(hub, '/groups/course/users', 'POST', { users: ['victim'] });
  const statusOf = async (token: string, name: string) =>
    (await call(hub, token, `/users/${name}`, 'DELETE')).status;
  // Her right is for the members of a group.
  expect(await statusOf(hub.tokens.gina, 'victim')).toBe(403);
  expect(await statusOf('culler-token', 'victim')).toBe(204);
  // In the configuration: an administrator, the holder of a role.
  expect(await statusOf('culler-token', 'ada')).toBe(403);
  expect(await statusOf('culler-token', 'tea')).toBe(403);
});

test('custom scopes of a user are no obstacle to administrators', async () => {
  await using hub = await createPopulatedHub(courseHub, courseUsers);
  await asAdmin(hub, '/groups/graders', 'POST');
  const asAda = (path: string, method: string, body?: unknown) =>
    call(hub, hub.tokens.ada, path, method, body);
  const token = await asAda('/users/tea/tokens', 'POST');
  expect(token.body['scopes']).toContain('custom:grades');
  // Somebody who may do less than an administrator gives no power in services away.
  const byGina = await call(hub, hub.tokens.gina, '/users/tea/tokens', 'POST');
  expect(byGina.status).toBe(403);
  expect((await asAda('/users/ada/tokens', 'POST', { scopes: ['custom:grades'] })).status).toBe(
    400,
  );
  expect((await asAda('/users/tea', 'PATCH', { admin: true })).status).toBe(200);
  expect((await asAda('/users/tea', 'PATCH', { name: 'lea' })).status).toBe(200);
  expect((await asAda('/users/lea', 'DELETE')).status).toBe(204);
});

/** A hub with an application, and a token that it holds of a user who is logged in. */
async function createHubWithApplication() {
  const client = { clientId: 'service-app', redirectUri: 'http://127.0.0.1:9/callback' };
  const hub = await createPopulatedHub(
    {
      Hub: {
        services: [
          {
            name: 'app',
            oauth_client_id: client.clientId,
            oauth_redirect_uri: client.redirectUri,
            api_token: 'app-service-token',
            oauth_no_confirm: true,
            oauth_client_allowed_scopes: ['self'],
          },
        ],
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      },
    },
    ['bob'],
  );
  const browser = await hub.logIn('bob');
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    scope: 'tokens!user',
    state: 's',
  });
  const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
  const { searchParams } = new URL(String(answer.headers['location']), hub.url);
  const exchanged = await fetch(`${hub.apiUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: searchParams.get('code') ?? '',
      redirect_uri: client.redirectUri,
      client_id: client.clientId,
      client_secret: 'app-service-token',
    }),
  });
  const { access_token: granted } = (await exchanged.json()) as { access_token: string };
  return { hub, granted, browser };
}

describe('a token made with another', () => {
  test('expires no later than that one', async () => {
    await using hub = await createPopulatedHub({}, ['bob']);
    const short = await call(hub, hub.tokens.bob, '/users/bob/tokens', 'POST', { expires_in: 60 });
    for (const body of [{}, { expires_in: 0 }, { expires_in: 86_400 }]) {
      const made = await call(hub, String(short.body['token']), '/users/bob/tokens', 'POST', body);
      expect(made.body['expires_at'], JSON.stringify(body)).toBe(short.body['expires_at']);
    }
    const shorter = await call(hub, String(short.body['token']), '/users/bob/tokens', 'POST', {
      expires_in: 5,
    });
    expect(String(shorter.body['expires_at']) < String(short.body['expires_at'])).toBe(true);
  });

  test.each([
    ['the login that the other hangs on ends', '/users/bob/sessions'],
    ['the application that holds the other loses it', ''],
  ])('ends when %s', async (_what, ended) => {
    const { hub, granted, browser } = await createHubWithApplication();
    await using _hub = hub;
    const made = await call(hub, granted, '/users/bob/tokens', 'POST', { scopes: ['tokens!user'] });
    expect(made.status).toBe(201);
    const token = String(made.body['token']);
    expect((await call(hub, token, '/users/bob/tokens')).status).toBe(200);
    if (ended === '') {
      const page = await browser.request(`${hub.url}hub/account`);
      expect((await submitTo(browser, page, '/hub/token/revoke-client')).status).toBe(303);
    } else await asAdmin(hub, ended, 'DELETE');
    expect((await call(hub, token, '/users/bob/tokens')).status).toBe(403);
  });

  test('ends when that one is revoked, and takes along what was made with it', async () => {
    await using hub = await createPopulatedHub({}, ['bob', 'eve']);
    const make = async (token: string, owner = 'bob') => {
      const { status, body } = await call(hub, token, `/users/${owner}/tokens`, 'POST');
      expect(status).toBe(201);
      return { id: String(body['id']), token: String(body['token']) };
    };
    const isGood = async ({ token }: { readonly token: string }) =>
      (await call(hub, token, '/user')).status === 200;
    const stolen = await make(adminToken);
    const child = await make(stolen.token);
    const grandchild = await make(child.token);
    const other = await make(hub.tokens.bob);
    expect(await Promise.all([stolen, child, grandchild, other].map(isGood))).toEqual(
      Array(4).fill(true),
    );
    await asAdmin(hub, `/users/bob/tokens/${stolen.id}`, 'DELETE');
    expect(await Promise.all([stolen, child, grandchild].map(isGood))).toEqual(
      Array(3).fill(false),
    );
    expect(await isGood(other)).toBe(true);

    await asAdmin(hub, '/users/eve', 'PATCH', { admin: true });
    const ofEve = await make(hub.tokens.eve, 'bob');
    expect(await isGood(ofEve)).toBe(true);
    await asAdmin(hub, '/users/eve', 'DELETE');
    expect(await isGood(ofEve)).toBe(false);
  });

  test('outlives a login by cookie only because it was asked for while that was recent', async () => {
    await using hub = await createPopulatedHub({}, ['bob']);
    const browser = await hub.logIn('bob');
    const page = await browser.request(`${hub.url}hub/account`);
    const { body } = await browser.follow(
      await submitTo(browser, page, '/hub/token', { note: 'x' }),
    );
    const token = /hub_[\w-]{43}/.exec(body)?.[0] ?? '';
    await asAdmin(hub, '/users/bob/sessions', 'DELETE');
    expect((await call(hub, token, '/user')).status).toBe(200);
  });

  test('may not do more than that one, now or later', async () => {
    await using hub = await createPopulatedHub({}, ['bob']);
    const weak = await call(hub, hub.tokens.bob, '/users/bob/tokens', 'POST', {
      scopes: ['tokens!user', 'read:users:name!user'],
    });
    const token = String(weak.body['token']);
    for (const scopes of [undefined, ['inherit'], ['self'], ['servers!user']]) {
      const made = await call(hub, token, '/users/bob/tokens', 'POST', { scopes });
      expect(made.status, String(scopes)).toBe(403);
    }
    const made = await call(hub, token, '/users/bob/tokens', 'POST', { scopes: ['tokens!user'] });
    await asAdmin(hub, '/users/bob', 'PATCH', { admin: true });
    const power = await call(hub, String(made.body['token']), '/users', 'POST', {
      usernames: ['x1'],
    });
    expect(power.status).toBe(403);
  });
});
