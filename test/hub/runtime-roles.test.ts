import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { submitMain, submitTo } from '../support/pages.ts';
import { createPasswordHub, passwordHubConfig, testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import {
  managedService,
  openWithConsent,
  projectDirectory,
  untilState,
} from '../support/services.ts';
import type { TestHub, TestHubConfig } from '../support/test-hub.ts';

const people = ['ada', 'bob', 'carol', 'dora', 'erin', 'eve', 'frank'];
const configuredRoles = [
  { name: 'user', scopes: ['self'] },
  {
    name: 'role-manager',
    scopes: ['admin:roles', 'admin-ui', 'read:hub', 'servers!group=staff'],
    users: ['eve'],
  },
  { name: 'reader', scopes: ['read:metrics'], users: ['bob'] },
  { name: 'open', scopes: ['read:hub'] },
];
let hub: TestHub;
let config: TestHubConfig;
/** Of a user who manages roles and may do little else. */
let eve: string;

beforeAll(async () => {
  config = passwordHubConfig({
    Hub: {
      load_groups: [{ name: 'staff', users: ['bob'] }],
      load_roles: configuredRoles,
      services: [
        { name: 'bot', api_token: 'bot-service-token' },
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
      ],
    },
  });
  hub = await createPasswordHub(people, config);
  eve = await tokenOf(hub, 'eve');
  await untilState(hub, 'app', 'ready');
});
afterAll(() => hub[Symbol.asyncDispose]());

interface RoleModel {
  readonly name: string;
  readonly scopes: string[];
  readonly source: string;
  readonly users: { name: string; source: string }[];
  readonly services: { name: string; source: string }[];
}

/** Asks, and gives the status and the answer. */
async function ask(
  method: string,
  path: string,
  body?: object,
  { token = adminToken, headers = {} }: { token?: string; headers?: Record<string, string> } = {},
) {
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const answer = await hub.api(path, token, init);
  const text = await answer.text();
  return {
    status: answer.status,
    etag: answer.headers.get('etag') ?? '',
    body: (text === '' ? {} : JSON.parse(text)) as RoleModel & { message: string; hint?: string },
  };
}

const statusOf = async (...request: Parameters<typeof ask>) => (await ask(...request)).status;
const scopesOf = async (token: string) => {
  const answer = await hub.api('/user', token);
  return ((await answer.json()) as { scopes: string[] }).scopes;
};

describe('a role', () => {
  test('is made, given, changed, taken away and deleted, and counts at once', async () => {
    const token = await tokenOf(hub, 'carol');
    const made = await ask('POST', '/roles/metrics', { scopes: ['read:metrics', 'read:metrics'] });
    expect([made.status, made.body]).toEqual([
      201,
      {
        kind: 'role',
        name: 'metrics',
        description: '',
        scopes: ['read:metrics'],
        source: 'api',
        users: [],
        groups: [],
        services: [],
        holder_count: 0,
      },
    ]);
    const given = await ask('POST', '/roles/metrics/assignments', {
      users: ['carol'],
      services: ['bot'],
    });
    expect([given.status, given.body.users, given.body.services]).toEqual([
      200,
      [{ name: 'carol', source: 'api' }],
      [{ name: 'bot', source: 'api' }],
    ]);
    expect(await scopesOf(token)).toContain('read:metrics');
    expect(await scopesOf('bot-service-token')).toContain('read:metrics');

    const changed = await ask('PATCH', '/roles/metrics', { scopes: ['read:hub'] });
    expect([changed.status, changed.body.scopes]).toEqual([200, ['read:hub']]);
    expect(await scopesOf(token)).not.toContain('read:metrics');
    expect(await scopesOf(token)).toContain('read:hub');

    const assignments = '/roles/metrics/assignments';
    expect(await statusOf('DELETE', assignments, { users: ['carol', 'no-one'] })).toBe(200);
    expect(await scopesOf(token)).not.toContain('read:hub');
    expect(await statusOf('DELETE', '/roles/metrics')).toBe(204);
    expect(await statusOf('GET', '/roles/metrics')).toBe(404);
    expect(await scopesOf('bot-service-token')).not.toContain('read:hub');
  });

  test('ends access that was open with it', async () => {
    await ask('POST', '/roles/opener', { scopes: ['access:services!service=app'] });
    await ask('POST', '/roles/opener/assignments', { users: ['dora'] });
    const browser = await hub.logIn('dora', testPassword);
    const appUrl = `${hub.url}services/app/`;
    expect((await openWithConsent(browser, appUrl)).status).toBe(200);
    const seen = async () =>
      (await browser.request(appUrl, { headers: { 'sec-fetch-mode': 'cors' } })).status;
    expect(await seen()).toBe(200);
    await ask('PATCH', '/roles/opener', { scopes: ['read:hub'] });
    expect(await seen()).toBe(403);
  });

  test('is listed with where it comes from', async () => {
    const answer = await hub.api('/roles?limit=200', adminToken);
    const roles = (await answer.json()) as RoleModel[];
    const sources = Object.fromEntries(roles.map(({ name, source }) => [name, source]));
    expect(sources).toMatchObject({ admin: 'default', user: 'config', reader: 'config' });
    const reader = await ask('GET', '/roles/reader');
    expect(reader.body.users).toEqual([{ name: 'bob', source: 'config' }]);
  });

  test('goes with the user who had it, so that the next of that name has none', async () => {
    await ask('POST', '/roles/passing', { scopes: ['read:metrics'] });
    await ask('POST', '/roles/passing/assignments', { users: ['frank'] });
    await ask('DELETE', '/users/frank');
    await ask('POST', '/users/frank');
    expect((await ask('GET', '/roles/passing')).body.users).toEqual([]);
  });
});

test.skipIf(!requires('curl'))('the commands of the documentation do what they say', async () => {
  const page = join(projectDirectory, 'docs', 'how-to', 'manage-roles.md');
  const [, commands = ''] = /```sh\n([\s\S]*?)```/.exec(await readFile(page, 'utf8')) ?? [];
  const { stdout } = await promisify(execFile)('sh', ['-ec', commands], {
    env: { ...process.env, HUB_API_TOKEN: adminToken, HUB_API_URL: hub.apiUrl },
  });
  expect(stdout).toContain('"users":[{"name":"bob","source":"api"}]');
  expect(await statusOf('GET', '/roles/course-lead')).toBe(404);
});

describe('bad input:', () => {
  test.each([
    ['a scope that there is not', 'role-x1', { scopes: ['read:everything'] }, 'there is no scope'],
    [
      'a scope with a filter that cannot be',
      'role-x2',
      { scopes: ['servers!planet=mars'] },
      'filter',
    ],
    ['a role that stands for itself', 'role-x3', { scopes: ['inherit'] }, 'no role can hold it'],
    ['a name that cannot be', 'X', { scopes: [] }, 'name: must have'],
    ['too many scopes', 'role-x4', { scopes: Array(201).fill('read:hub') }, 'scopes'],
    ['a scope without end', 'role-x5', { scopes: [`servers!user=${'x'.repeat(900)}`] }, 'scopes'],
    ['a control character', 'role-x6', { scopes: [], description: 'a\0b' }, 'description'],
    ['no scopes', 'role-x7', {}, 'scopes'],
  ])('%s', async (_what, name, body, message) => {
    const answer = await ask('POST', `/roles/${name}`, body);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(message)]);
  });

  test('a name that is taken, by whatever role', async () => {
    for (const name of ['admin', 'user', 'token', 'reader']) {
      expect([name, await statusOf('POST', `/roles/${name}`, { scopes: [] })]).toEqual([name, 409]);
    }
  });

  test('holders that there are not, and then no one gets it', async () => {
    await ask('POST', '/roles/nobodys', { scopes: ['read:hub'] });
    for (const body of [
      { users: ['bob', 'no-one'] },
      { groups: ['no-group'] },
      { services: ['no-service'] },
      { users: ['a/b'] },
      { users: ['a\0b'] },
    ]) {
      const answer = await ask('POST', '/roles/nobodys/assignments', body);
      expect([body, answer.status]).toEqual([body, 400]);
    }
    expect((await ask('GET', '/roles/nobodys')).body.users).toEqual([]);
    expect(await statusOf('DELETE', '/roles/nobodys/assignments', { users: ['a\0b'] })).toBe(200);
  });
});

describe('what the configuration decides', () => {
  test('is not changed, and the answer says where it is', async () => {
    for (const [method, path, body] of [
      ['PATCH', '/roles/reader', { scopes: [] }],
      ['DELETE', '/roles/reader', undefined],
      ['PATCH', '/roles/admin', { scopes: [] }],
      ['DELETE', '/roles/user', undefined],
    ] as const) {
      const { status, body: answer } = await ask(method, path, body);
      expect([path, status, answer.hint]).toEqual([
        path,
        409,
        expect.stringContaining('Hub.load_roles'),
      ]);
    }
    for (const [name, users] of [
      ['reader', ['carol']],
      ['admin', ['carol']],
      ['user', ['carol']],
    ] as const) {
      expect([name, await statusOf('POST', `/roles/${name}/assignments`, { users })]).toEqual([
        name,
        409,
      ]);
    }
    expect(await statusOf('DELETE', '/roles/reader/assignments', { users: ['bob'] })).toBe(409);
  });

  test('leaves the holders that it does not list to the API, over a reload', async () => {
    expect(await statusOf('POST', '/roles/open/assignments', { users: ['carol'] })).toBe(200);
    await hub.reload(config);
    expect((await ask('GET', '/roles/open')).body.users).toEqual([
      { name: 'carol', source: 'api' },
    ]);
  });

  test('replaces a role of the same name, and no one keeps it who was given it before', async () => {
    await ask(
      'POST',
      '/roles/future',
      { scopes: ['read:hub'], description: 'Of eve.' },
      { token: eve },
    );
    await ask('POST', '/roles/future/assignments', { users: ['eve'] }, { token: eve });
    const load_roles = [
      ...configuredRoles,
      { name: 'future', scopes: ['admin:users'], services: ['bot'] },
    ];
    await hub.reload({ ...config, Hub: { ...config.Hub, load_roles } });
    const { body } = await ask('GET', '/roles/future');
    expect([body.source, body.scopes, body.users]).toEqual(['config', ['admin:users'], []]);
    expect(await scopesOf(eve)).not.toContain('admin:users');
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({
        role: 'future',
        former: { description: 'Of eve.', scopes: ['read:hub'] },
      }),
    );
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({ role: 'future', holders: ['user eve'] }),
    );
    await hub.reload(config);
    expect(await statusOf('GET', '/roles/future')).toBe(404);
  });
});

describe('no one gives more than they may do:', () => {
  const as = {
    get token() {
      return eve;
    },
  };

  test('not by a new role, nor by more scopes for one', async () => {
    for (const scopes of [
      ['admin:users'],
      ['read:hub', 'shutdown'],
      ['servers'],
      ['servers!group=others'],
      ['gateway'],
      ['access:services!service'],
      ['access:servers!server'],
    ]) {
      const answer = await ask('POST', '/roles/grab', { scopes }, as);
      expect([scopes, answer.status]).toEqual([scopes, 403]);
    }
    expect(await statusOf('POST', '/roles/mine', { scopes: ['read:hub', 'self'] }, as)).toBe(201);
    expect(await statusOf('PATCH', '/roles/mine', { scopes: ['tokens'] }, as)).toBe(403);
    expect(await statusOf('PATCH', '/roles/mine', { scopes: ['servers!group=staff'] }, as)).toBe(
      200,
    );
  });

  test('not by giving, changing, taking away or deleting a role that may do more', async () => {
    await ask('POST', '/roles/strong', { scopes: ['shutdown'] });
    await ask('POST', '/roles/strong/assignments', { users: ['erin'] });
    const assignments = '/roles/strong/assignments';
    expect(await statusOf('POST', assignments, { users: ['eve'] }, as)).toBe(403);
    expect(await statusOf('DELETE', assignments, { users: ['erin'] }, as)).toBe(403);
    expect(await statusOf('PATCH', '/roles/strong', { scopes: [] }, as)).toBe(403);
    expect(await statusOf('PATCH', '/roles/strong', { description: 'x' }, as)).toBe(403);
    expect(await statusOf('DELETE', '/roles/strong', undefined, as)).toBe(403);
    expect((await ask('GET', '/roles/strong')).body.users).toEqual([
      { name: 'erin', source: 'api' },
    ]);
    const groups = ['staff'];
    expect(await statusOf('POST', '/roles/admin/assignments', { groups }, as)).toBe(403);
  });

  test('nor by a token that may do less than its owner', async () => {
    const token = await tokenOf(hub, 'eve', ['admin:roles']);
    const scopes = ['servers!group=staff'];
    expect(await statusOf('POST', '/roles/by-token', { scopes }, { token })).toBe(403);
  });
});

describe('of two changes at once', () => {
  test('one is made, and the other is told', async () => {
    const { etag } = await ask('POST', '/roles/raced', { scopes: ['read:hub'] });
    const headers = { 'if-match': etag };
    const change = (scope: string) =>
      statusOf('PATCH', '/roles/raced', { scopes: [scope] }, { headers });
    const statuses = await Promise.all(['read:metrics', 'proxy', 'shutdown'].map(change));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409 || status === 412)).toHaveLength(2);
    expect(await statusOf('DELETE', '/roles/raced', undefined, { headers })).toBe(412);
    const made = await Promise.all(
      [1, 2, 3].map(() => statusOf('POST', '/roles/twice', { scopes: [] })),
    );
    expect(made.sort()).toEqual([201, 409, 409]);
  });

  test('of a group as well; members of whom none was read hold all the same', async () => {
    const at = '/groups/raced';
    const created = await ask('POST', at, { users: ['carol'] });
    const read = await ask('GET', at);
    expect([created.etag, read.etag]).toEqual([read.etag, expect.stringMatching(/^"\S{22}"$/)]);
    const headers = { 'if-match': read.etag };
    const change = (method: string, part: string, body?: object) =>
      statusOf(method, `${at}${part}`, body, { headers });
    const statuses = await Promise.all([
      change('PUT', '/properties', { quota: 1 }),
      change('PUT', '/properties', { quota: 2 }),
      change('POST', '/users', { users: ['erin'] }),
      change('DELETE', '/users', { users: ['carol'] }),
    ]);
    expect(statuses.toSorted()).toEqual([200, 412, 412, 412]);
    expect(await change('DELETE', '')).toBe(412);
    const changes = [
      ask('POST', `${at}/users`, { users: ['erin'] }),
      ask('POST', `${at}/users`, { users: ['eve'] }),
      ask('DELETE', `${at}/users`, { users: ['carol'] }),
    ];
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const now = await ask('GET', at);
    expect(now.body.users).toEqual(['erin', 'eve']);
    // Who may not read the group gets no hash of what is in it.
    const token = await tokenOf(hub, 'ada', ['read:groups:name']);
    expect((await ask('GET', at, undefined, { token })).etag).toBe('');
    const last = { headers: { 'if-match': now.etag } };
    expect(await statusOf('DELETE', at, undefined, last)).toBe(204);
  });
});

describe('the pages', () => {
  const at = (path: string) => `${hub.url}hub/admin${path}`;

  test('make, show, give, change and delete a role', async () => {
    const ada = await hub.logIn('ada', testPassword);
    const form = await ada.request(at('/new-role'));
    expect(form.body).toContain('Read the metrics of the hub');
    const refused = await submitMain(ada, form, { name: 'No name', description: 'x' });
    expect([refused.status, refused.body.includes('>Must have 3 to 255')]).toEqual([400, true]);
    const made = await submitMain(ada, form, {
      name: 'watchers',
      scope: 'read:metrics',
      filtered: 'servers!group=staff\n',
    });
    expect(made.status).toBe(303);
    let page = await ada.request(at('/roles/watchers'));
    expect(page.body).toContain('Read the metrics of the hub');
    expect(page.body).toContain('only group staff');

    const unknown = await submitTo(ada, page, '/hub/admin/roles/watchers/assign', {
      kind: 'user',
      names: 'no-one',
    });
    expect([unknown.status, unknown.body.includes('There is no such user')]).toEqual([400, true]);
    const given = { kind: 'user', names: 'carol\r\nbob' };
    await submitTo(ada, page, '/hub/admin/roles/watchers/assign', given);
    page = await ada.request(at('/roles/watchers'));
    expect(page.body).toContain('/hub/admin/users/carol');
    await submitTo(ada, page, '/hub/admin/roles/watchers/take-away', {}, 'value="carol"');
    page = await ada.request(at('/roles/watchers'));
    expect(page.body).not.toContain('/hub/admin/users/carol');

    const edit = await ada.request(at('/roles/watchers/edit'));
    await ask('PATCH', '/roles/watchers', { scopes: ['proxy'] });
    const late = await submitMain(ada, edit, { scope: 'read:hub', filtered: '' });
    expect([late.status, late.body.includes('has been changed since')]).toEqual([400, true]);
    expect(late.body).toContain('by Service admin-service.');
    expect(late.body).toContain('<dd><code>proxy</code></dd>');
    expect(late.body).toMatch(/value="read:hub" checked/);
    expect((await ask('GET', '/roles/watchers')).body.scopes).toEqual(['proxy']);
    const saved = await submitMain(ada, late, { scope: 'read:hub', filtered: '' });
    expect(saved.status).toBe(303);
    expect((await ask('GET', '/roles/watchers')).body.scopes).toEqual(['read:hub']);

    const confirm = await ada.request(at('/roles/watchers/delete'));
    await ask('PATCH', '/roles/watchers', { scopes: ['proxy'] });
    const changed = await submitMain(ada, confirm, {});
    expect(changed.body).toContain('Nothing was deleted.');
    expect(changed.body).toContain('<dd><code>proxy</code></dd>');
    expect((await submitMain(ada, changed, {})).status).toBe(303);
    expect((await ada.request(at('/roles/watchers'))).status).toBe(404);
    const fixed = await ada.request(at('/roles/reader'));
    expect(fixed.body).toContain('the configuration file');
    expect(fixed.body).not.toContain('/roles/reader/edit');
  });

  test('come with their first holders, however many there are', async () => {
    const users = Array.from({ length: 201 }, (_, index) => `crowd${100 + index}`);
    await ask('POST', '/users', { usernames: users });
    await ask('POST', '/roles/crowd', { scopes: ['read:hub'] });
    const given = await ask('POST', '/roles/crowd/assignments', { users });
    expect(given.body.users).toHaveLength(200);
    const { body } = await ask('GET', '/roles/crowd');
    expect(body).toMatchObject({ holder_count: 201, groups: [], services: [] });
    expect(body.users).toHaveLength(200);
    expect(body.users.at(-1)?.name).toBe('crowd299');
    await ask('DELETE', '/roles/crowd');
  });

  test('show the holders of a role a page at a time', async () => {
    const users = Array.from({ length: 51 }, (_, index) => `held${String(index).padStart(2, '0')}`);
    await ask('POST', '/users', { usernames: users });
    await ask('POST', '/roles/many', { scopes: ['read:hub'] });
    await ask('POST', '/roles/many/assignments', { users });
    const { body: page } = await ask('GET', '/roles/many/holders?offset=49&limit=5');
    expect(page).toEqual(
      ['held49', 'held50'].map((name) => ({ kind: 'user', name, source: 'api' })),
    );
    expect((await ask('GET', '/roles/none/holders')).status).toBe(404);
    const ada = await hub.logIn('ada', testPassword);
    expect((await ada.request(at('/roles'))).body).toMatch(/roles\/many">many<[\s\S]*?<div>51</);
    const first = await ada.request(at('/roles/many'));
    expect(first.body).toContain('50 of 51');
    expect(first.body).not.toContain('/hub/admin/users/held50');
    const second = await ada.request(at('/roles/many?after=user:held49'));
    expect(second.body).toContain('/hub/admin/users/held50');
    expect(second.body).not.toContain('/hub/admin/users/held49');
    const takeAway = '/hub/admin/roles/many/take-away';
    const taken = await submitTo(ada, second, takeAway, {}, 'value="held50"');
    expect(taken.headers.location).toBe('/hub/admin/roles/many?after=user%3Aheld49');
    // There is no second page any more.
    const left = await ada.request(at('/roles/many?after=user:held49'));
    expect(left.body).toContain('/hub/admin/users/held49');
    expect(left.body).not.toContain('rel="next"');
  });

  test('offer a manager of roles what they may give, and show others nothing', async () => {
    const browser = await hub.logIn('eve', testPassword);
    const form = await browser.request(at('/new-role'));
    expect(form.body).toContain('value="read:hub"');
    expect(form.body).not.toContain('value="shutdown"');
    const forged = await submitMain(browser, form, { name: 'forged', scope: 'shutdown' });
    expect([forged.status, forged.body.includes('You lack')]).toEqual([403, true]);
    const bob = await hub.logIn('bob', testPassword);
    expect((await bob.request(at('/roles'))).status).toBe(403);
  });
});
