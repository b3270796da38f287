import { describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { asAdmin, call, createPopulatedHub } from '../support/populated-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

/** What the configuration gives to names: roles, rules, profiles and limits. */
const namesHub = {
  Hub: {
    load_groups: [{ name: 'board', users: ['bea'] }],
    load_roles: [
      { name: 'user', scopes: ['self', 'access:services'] },
      { name: 'group-desk', scopes: ['admin:groups', 'admin-ui', 'list:users'], users: ['gina'] },
      { name: 'user-desk', scopes: ['admin:users', 'admin-ui'], users: ['ulla'] },
      {
        name: 'ops',
        scopes: ['admin:users', 'tokens', 'shutdown'],
        users: ['dean'],
        groups: ['staff'],
      },
      { name: 'minutes', scopes: ['read:hub', 'shutdown'], groups: ['board'] },
      { name: 'lab-keeping', scopes: ['groups!group=lab'], groups: ['lab-keepers'] },
      {
        name: 'course-lead',
        scopes: ['admin:users!group=course', 'groups!group=lab'],
        users: ['lea'],
      },
    ],
    services: [
      {
        name: 'wiki',
        url: 'http://127.0.0.1:9/',
        access: 'gateway',
        rules: [{ paths: ['/admin/*'], groups: ['wiki-admins'] }],
      },
    ],
  },
  Authenticator: { admin_users: ['ada'] },
  Spawner: {
    profiles: [{ name: 'big', display_name: 'Big', groups: ['big-users', 'lab'] }],
    limits_by_group: { 'long-runners': { idle_timeout_seconds: 0 } },
  },
};
const people = ['gina', 'ulla', 'lea', 'eve', 'victim'] as const;
const createNamesHub = (config = {}) => createPopulatedHub({ ...namesHub, ...config }, people);

async function membersOf(hub: TestHub, group: string): Promise<unknown> {
  return (await asAdmin(hub, `/groups/${group}`))['users'];
}

/** Sends the form of a page to an address, and what comes of it. */
async function send(
  hub: TestHub,
  browser: FakeBrowser,
  page: string,
  action: string,
  values: Readonly<Record<string, string>>,
) {
  const form = await browser.request(`${hub.url}hub/${page}`);
  return submitTo(browser, form, `/hub/${action}`, values);
}

describe('a group to which the configuration gives a role', () => {
  test('is not deleted and made again to get its role', async () => {
    await using hub = await createNamesHub();
    await asAdmin(hub, '/groups/staff/users', 'POST', { users: ['victim'] });
    const asGina = (path: string, method: string, body?: unknown) =>
      call(hub, hub.tokens.gina, path, method, body);
    const refused = await asGina('/groups/staff', 'DELETE');
    expect(refused.status).toBe(403);
    expect(JSON.stringify(refused.body)).toMatch(/shutdown|tokens/);
    expect(await membersOf(hub, 'staff')).toEqual(['victim']);
    const browser = await hub.logIn('gina');
    const question = await browser.request(`${hub.url}hub/admin/groups/staff/delete`);
    expect((await submitMain(browser, question, {})).status).toBe(403);
    expect(await membersOf(hub, 'staff')).toEqual(['victim']);

    await asAdmin(hub, '/groups/staff', 'DELETE');
    for (const body of [{ users: ['gina'] }, {}]) {
      expect((await asGina('/groups/staff', 'POST', body)).status).toBe(403);
    }
    const many = { groups: ['free', 'staff'], users: ['gina'] };
    expect((await asGina('/groups', 'POST', many)).status).toBe(403);
    expect((await asGina('/groups/free', 'GET')).status).toBe(404);
    const byPage = await send(hub, browser, 'admin/groups', 'admin/groups', { name: 'staff' });
    expect(byPage.status).toBe(403);
    // It is there again, without the role.
    await asAdmin(hub, '/groups/staff', 'POST');
    expect((await asGina('/groups/staff/users', 'POST', { users: ['gina'] })).status).toBe(403);
    const added = await send(hub, browser, 'admin/groups/staff', 'admin/groups/staff/add-members', {
      names: 'gina',
    });
    expect(added.status).toBe(403);
    expect(await membersOf(hub, 'staff')).toEqual([]);
    await hub.reload(namesHub);
    expect((await call(hub, hub.tokens.gina, '/users/victim/tokens')).status).toBe(404);
    expect((await asGina('/groups/free', 'POST', { users: ['gina'] })).status).toBe(201);
    expect((await asGina('/groups/free', 'DELETE')).status).toBe(204);
  });

  test('keeps who may manage it where the role is in force as before', async () => {
    await using hub = await createNamesHub();
    const { tokens } = hub;
    await asAdmin(hub, '/users/eve', 'PATCH', { admin: true });
    expect((await call(hub, tokens.eve, '/groups/staff', 'DELETE')).status).toBe(204);
    const again = { users: ['victim'] };
    expect((await call(hub, tokens.eve, '/groups/staff', 'POST', again)).status).toBe(201);
    await hub.reload(namesHub);
    expect((await call(hub, tokens.victim, '/users/eve/tokens')).status).toBe(200);
  });
});

describe.each([
  ['a rule of a service', 'wiki-admins'],
  ['a profile', 'big-users'],
  ['the time limits', 'long-runners'],
])('a group that %s names', (_what, group) => {
  test('is given to no one by those who are not in it, and is not theirs to delete', async () => {
    await using hub = await createNamesHub();
    const asGina = (path: string, method: string, body?: unknown) =>
      call(hub, hub.tokens.gina, path, method, body);
    const made = await asGina(`/groups/${group}`, 'POST', { users: ['gina'] });
    expect(made.status).toBe(403);
    expect(made.body['hint']).toEqual(expect.stringMatching(/member/));
    await asAdmin(hub, `/groups/${group}`, 'POST', { users: ['victim'] });
    const add = (name: string) => asGina(`/groups/${group}/users`, 'POST', { users: [name] });
    expect((await add('gina')).status).toBe(403);
    expect((await asGina(`/groups/${group}`, 'DELETE')).status).toBe(403);
    expect(await membersOf(hub, group)).toEqual(['victim']);
    // A token for the group alone makes no one its manager.
    const narrow = await asGina('/users/gina/tokens', 'POST', {
      scopes: [`groups!group=${group}`],
    });
    const byToken = await call(
      hub,
      String(narrow.body['token']),
      `/groups/${group}/users`,
      'POST',
      {
        users: ['gina'],
      },
    );
    expect(byToken.status).toBe(403);
    // Who is in it has what it gives.
    await asAdmin(hub, `/groups/${group}/users`, 'POST', { users: ['gina'] });
    expect((await add('eve')).status).toBe(200);
    expect((await asGina(`/groups/${group}`, 'DELETE')).status).toBe(204);
  });
});

test('who joins those who look after a group gets no further than before', async () => {
  await using hub = await createNamesHub();
  await asAdmin(hub, '/groups/lab', 'POST');
  const asGina = (path: string, method: string, body?: unknown) =>
    call(hub, hub.tokens.gina, path, method, body);
  const add = (group: string) => asGina(`/groups/${group}/users`, 'POST', { users: ['gina'] });
  // She holds the scope of their role, and is no one to whom the configuration gave this group.
  expect((await add('lab-keepers')).status).toBe(403);
  expect((await asGina('/groups/lab-keepers', 'DELETE')).status).toBe(403);
  expect((await add('lab')).status).toBe(403);
  await asAdmin(hub, '/groups/lab-keepers/users', 'POST', { users: ['gina'] });
  expect((await add('lab')).status).toBe(200);
});

test('who looks after a group by the configuration gives what the configuration opens to it', async () => {
  await using hub = await createNamesHub();
  await asAdmin(hub, '/groups/lab', 'POST');
  const added = await call(hub, hub.tokens.lea, '/groups/lab/users', 'POST', {
    users: ['lea'],
  });
  expect(added.status).toBe(200);
});

describe('a name to which the configuration gives rights', () => {
  /** One for each way to have rights by a name. */
  const names = ['ada', 'dean', 'bea'];

  async function createHubWithoutThem() {
    const hub = await createNamesHub();
    for (const name of names) await asAdmin(hub, `/users/${name}`, 'DELETE');
    await asAdmin(hub, '/groups/course', 'POST', { users: ['eve'] });
    return hub;
  }

  test.each(names)('%s is not taken by a rename', async (name) => {
    await using hub = await createHubWithoutThem();
    for (const token of [hub.tokens.lea, hub.tokens.ulla]) {
      const renamed = await call(hub, token, '/users/eve', 'PATCH', { name });
      expect(renamed.status).toBe(403);
      expect(JSON.stringify(renamed.body)).toContain('configuration');
    }
    // Nothing of the request is done.
    expect((await call(hub, hub.tokens.eve, '/user')).body['name']).toBe('eve');
    for (const other of [name.toUpperCase(), ` ${name} `]) {
      const renamed = await call(hub, hub.tokens.ulla, '/users/eve', 'PATCH', { name: other });
      expect(renamed.status, other).toBe(403);
    }
    expect((await call(hub, hub.tokens.ulla, '/users/eve', 'PATCH', { name: 'eva' })).status).toBe(
      200,
    );
  });

  test.each(names)('%s is not made by those who have less', async (name) => {
    await using hub = await createHubWithoutThem();
    const asUlla = (path: string, method: string, body?: unknown) =>
      call(hub, hub.tokens.ulla, path, method, body);
    expect((await asUlla(`/users/${name}`, 'POST')).status).toBe(403);
    expect((await asUlla('/users', 'POST', { usernames: ['new', name] })).status).toBe(403);
    expect((await asUlla('/users/new', 'GET')).status).toBe(404);
    const browser = await hub.logIn('ulla');
    const people = { people: name };
    const shown = await send(hub, browser, 'admin/new-users', 'admin/new-users', people);
    expect(shown.body).toContain('0 users will be created.');
    const act = { act: 'import' };
    const byPage = await submitTo(browser, shown, '/hub/admin/import-users', act);
    expect(byPage.status).toBe(409);
    expect((await asUlla(`/users/${name}`, 'GET')).status).toBe(404);
    expect((await asUlla(`/users/${name}`, 'GET')).status).toBe(404);
    expect((await asUlla('/users/new', 'POST')).status).toBe(201);
    await asAdmin(hub, `/users/${name}`, 'POST');
    // Nor is one taken over that has not got its rights yet.
    const renamed = await asUlla(`/users/${name}`, 'PATCH', { name: 'other' });
    expect(renamed.status).toBe(403);
    expect((await asUlla(`/users/${name}`, 'DELETE')).status).toBe(403);
  });

  test('is passed over where the user is there already', async () => {
    await using hub = await createNamesHub();
    const made = await call(hub, hub.tokens.ulla, '/users', 'POST', { usernames: ['ada', 'new'] });
    expect(made.status).toBe(201);
  });

  test('is told about when its account is deleted', async () => {
    await using hub = await createNamesHub();
    await asAdmin(hub, '/users/eve', 'PATCH', { admin: true });
    const browser = await hub.logIn('eve');
    const question = await browser.request(`${hub.url}hub/admin/users/dean/delete`);
    expect(question.body).toContain('configuration still gives rights');
    const done = await submitMain(browser, question, { confirmation: 'dean' });
    expect(done.status).toBe(303);
  });

  test('that was an administrator once stays closed to those who are none', async () => {
    await using hub = await createNamesHub();
    await asAdmin(hub, '/users/ada', 'PATCH', { admin: false });
    for (const [method, path, body] of [
      ['PATCH', '/users/ada', { name: 'other' }],
      ['POST', '/users/ada/tokens', {}],
      ['DELETE', '/users/ada', undefined],
    ] as const) {
      const { status } = await call(hub, hub.tokens.ulla, path, method, body);
      expect([403, 404], `${method} ${path}`).toContain(status);
    }
  });
});

test('no role is made at run time under a name of the configuration', async () => {
  await using hub = await createNamesHub();
  const made = await asAdminOrNot(hub, '/roles/ops', { scopes: [] });
  expect(made).toBe(409);
  // A service that the configuration has no longer keeps its file from being loaded while a role names it.
  const withService = {
    ...namesHub,
    Hub: {
      ...namesHub.Hub,
      load_roles: [...namesHub.Hub.load_roles, { name: 'bot-role', services: ['bot'] }],
    },
  };
  await expect(hub.reload(withService)).rejects.toThrow();
});

async function asAdminOrNot(hub: TestHub, path: string, body: unknown): Promise<number> {
  return (await call(hub, 'admin-service-token', path, 'POST', body)).status;
}

describe('a start or reload that gives someone a role', () => {
  test('says so in the log and the audit log', async () => {
    await using hub = await createNamesHub();
    await asAdmin(hub, '/groups/staff', 'DELETE');
    await asAdmin(hub, '/groups/staff', 'POST', { users: ['gina', 'eve'] });
    await asAdmin(hub, '/users/ada', 'PATCH', { admin: false });
    const before = hub.logLines.length;
    expect((await hub.reload(namesHub)).given).toEqual({
      roles: ['admin to user ada', 'ops to group staff (eve, gina)'],
      members: [],
    });
    const given = hub.logLines
      .slice(before)
      .filter(({ msg }) => msg === 'role given by the configuration');
    expect(given).toMatchObject([{ role: 'ops', group: 'staff', users: ['eve', 'gina'] }]);
    expect(hub.logLines.slice(before)).toContainEqual(
      expect.objectContaining({
        user: 'ada',
        msg: 'user made administrator by configuration',
      }),
    );
    const { entries } = await asAdmin(hub, '/audit?action=role.assign&limit=5&target=gina');
    expect(entries).toMatchObject([
      {
        actor: { kind: 'hub' },
        target: { kind: 'group', name: 'staff' },
        detail: { role: 'ops' },
        users: ['eve', 'gina'],
      },
      { target: { kind: 'user', name: 'gina' }, detail: { role: 'group-desk' } },
    ]);
    // A group whose role is in force gets members.
    const more = {
      ...namesHub,
      Hub: { ...namesHub.Hub, load_groups: [{ name: 'board', users: ['bea', 'eve'] }] },
    };
    expect((await hub.reload(more)).given).toEqual({ roles: [], members: ['board (eve)'] });
    expect(
      hub.logLines.filter(({ msg }) => msg === 'members added by configuration'),
    ).toMatchObject([
      { group: 'board', users: ['bea'] },
      { group: 'board', users: ['eve'], roles: ['minutes'] },
    ]);
    const added = await asAdmin(hub, '/audit?action=group.add_members&limit=5&target=eve');
    expect(added['entries']).toMatchObject([
      { actor: { kind: 'hub' }, target: { name: 'board' }, detail: { origin: 'config' } },
    ]);
  });
});
