import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { fieldsWithFocus, submitTo } from '../support/pages.ts';
import { createPasswordHub, passwordHubConfig, testPassword } from '../support/password-hub.ts';
import { adminToken } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let ada: FakeBrowser;
beforeAll(async () => {
  hub = await createPasswordHub(
    ['ada', 'tim', 'tom', 'eve', 'bob'],
    passwordHubConfig({
      Hub: {
        load_groups: [
          { name: 'Statistik 101', users: ['bob'] },
          { name: 'staff', users: [] },
        ],
        load_roles: [
          { name: 'giver', scopes: ['admin:roles', 'admin-ui', 'servers'], users: ['eve'] },
          { name: 'guests', scopes: ['access:services!service=wiki'], users: ['tom'] },
        ],
        services: [{ name: 'wiki', api_token: 'wiki-service-token' }],
      },
    }),
  );
  ada = await hub.logIn('ada', testPassword);
});
afterAll(() => hub[Symbol.asyncDispose]());

const path = '/hub/admin/give-access';
const at = (below: string) => `${hub.url}hub/admin/${below}`;

/** Gives access with the form of a page and tells what came of it. */
async function give(
  values: Readonly<Record<string, string>>,
  { browser = ada, query = '' }: { browser?: FakeBrowser; query?: string } = {},
) {
  const page = await browser.request(`${at('give-access')}${query}`);
  const { status, headers, body } = await submitTo(browser, page, path, {
    ...{ holders: 'user', names: 'tim', kind: 'course-assistant', where: 'group' },
    ...values,
  });
  const [, problem = ''] =
    /(?:notice bad|class="problem")[^>]*>(?:<[^>]*>)*([^<]*)/.exec(body) ?? [];
  return { status, location: headers.location, problem, body };
}

interface RoleModel {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly description: string;
  readonly users: readonly { readonly name: string }[];
}

const asked = async <Answer>(below: string) =>
  (await (await hub.api(below, adminToken)).json()) as Answer;
const roleNames = async () =>
  (await asked<RoleModel[]>('/roles')).map(({ name }) => name).toSorted();

describe('access', () => {
  test('to one course is given, seen on its page, and taken away', async () => {
    const given = await give({ place: 'Statistik 101' }, { query: '?user=tim' });
    expect([given.status, given.location]).toEqual([303, '/hub/admin/users/tim']);
    const role = await asked<RoleModel>('/roles/course-assistant.statistik-101');
    expect(role).toMatchObject({
      description: 'Course assistant (only group Statistik 101)',
      users: [{ name: 'tim', source: 'api' }],
    });
    expect(role.scopes).toContain('admin-ui');
    expect(role.scopes).toContain('servers!group=Statistik 101');
    expect(role.scopes.filter((scope) => !scope.endsWith('!group=Statistik 101'))).toEqual([
      'admin-ui',
    ]);

    // Names may still be completed when the form is sent already.
    const { body } = await ada.request(`${hub.url}hub/home`);
    const [, token = ''] = /name="csrf-token" content="([^"]+)"/.exec(body) ?? [];
    expect(await give({ place: 'Statistik 101' }, { query: '?user=tim' })).toMatchObject({
      status: 303,
    });
    const completing = await ada.request(`${hub.url}hub/search?search=stat`, {
      headers: { accept: 'application/json', 'x-csrf-token': token },
    });
    expect(completing.status).toBe(200);
    expect((await ada.request(at('users/tim'))).body).toContain('Access is given to tim.');

    // The role is there already.
    const before = await roleNames();
    const again = await give(
      { names: 'tom', place: 'Statistik 101' },
      { query: '?group=Statistik%20101' },
    );
    expect([again.status, again.location]).toEqual([303, '/hub/admin/groups/Statistik%20101']);
    expect(await roleNames()).toEqual(before);

    const tim = await hub.logIn('tim', testPassword);
    expect((await tim.request(at('users/bob'))).status).toBe(200);
    expect((await tim.request(at('users/eve'))).status).toBe(404);

    const group = await ada.request(at('groups/Statistik%20101'));
    const takeAway = '/hub/admin/roles/course-assistant.statistik-101/take-away';
    const taken = await submitTo(ada, group, takeAway, {}, 'value="tim"');
    expect([taken.status, taken.headers.location]).toEqual([
      303,
      '/hub/admin/groups/Statistik%20101',
    ]);
    expect((await tim.request(at('users/bob'))).status).toBe(403);
    const tom = await ada.request(at('users/tom?tab=access'));
    expect(tom.body).toContain('Remove access of tom by course-assistant.statistik-101');
    expect(tom.body).not.toContain('Remove access of tom by guests');
  });

  test('that a role of the same name but other scopes gives is left as it is', async () => {
    await hub.api('/roles/support.staff', adminToken, {
      method: 'POST',
      body: JSON.stringify({ scopes: ['proxy'] }),
    });
    await give({ kind: 'support', place: 'staff' });
    const [, made] = await Promise.all([
      asked<RoleModel>('/roles/support.staff'),
      asked<RoleModel>('/roles/support.staff-2'),
    ]);
    expect(made.scopes).toContain('servers!group=staff');
  });

  test('to a service shows beside what the file gives', async () => {
    await give(
      { kind: 'service-manager', where: 'service', place: 'wiki' },
      { query: '?service=wiki' },
    );
    const { body } = await ada.request(at('services/wiki'));
    expect(body).toContain('Service manager (only service wiki)');
    expect(body).toContain('Remove access of tim');
    expect(body).toMatch(/>tom<[\s\S]*?guests<[\s\S]*?the configuration file/);
    expect(body).not.toContain('Remove access of tom');
    const role = await ada.request(at('roles/guests'));
    expect(role.body).toContain('The configuration says who holds the role guests');
  });

  test('chosen by scopes holds in the place alone', async () => {
    const custom = { kind: 'custom', where: 'group', place: 'staff' };
    await give({ ...custom, scopes: 'read:servers list:users!group=staff' });
    expect((await asked<RoleModel>('/roles/custom.staff')).scopes).toEqual([
      'read:servers!group=staff',
      'list:users!group=staff',
    ]);
    await give({ ...custom, where: 'server', place: 'bob', scopes: 'read:servers' });
    expect((await asked<RoleModel>('/roles/custom.bob')).scopes).toEqual([
      'read:servers!server=bob/',
    ]);
    const { problem } = await give({ ...custom, scopes: 'read:hub' });
    expect(problem).toContain(
      '“Read details about the hub” cannot be given as “only group staff”.',
    );
    expect((await give({ ...custom, scopes: 'read:server' })).problem).toContain(
      'did you mean "read:servers"?',
    );
  });

  test.each([
    [{}, 'Name the group, service or server.', 'place'],
    [{ place: 'nowhere' }, 'There is no such group', 'place'],
    [
      { kind: 'service-user', where: 'service', place: 'nothing' },
      'There is no such service',
      'place',
    ],
    [
      { kind: 'server-helper', where: 'server', place: 'nobody/' },
      'There is no such user',
      'place',
    ],
    [{ kind: 'auditor', place: 'staff' }, 'Choose everywhere.', 'where'],
    [{ kind: 'server-helper', where: 'all' }, 'Choose a server.', 'where'],
    [{ kind: 'custom', where: 'all' }, 'name at least one scope', 'scopes'],
    [{ kind: 'custom', where: 'all', scopes: 'read:nothing' }, 'read:nothing', 'scopes'],
    [{ kind: 'support', where: 'all', names: 'no-one' }, 'There is no such user', 'names'],
    [{ kind: 'support', where: 'nowhere' }, 'Choose what is given, and where.', 'where'],
  ])('is refused in words beside the field for %o', async (values, words, field) => {
    const before = await roleNames();
    const refused = await give(values);
    expect([refused.status, refused.problem]).toEqual([400, expect.stringContaining(words)]);
    expect(fieldsWithFocus(refused.body)).toEqual([field]);
    expect(await roleNames()).toEqual(before);
  });

  test('that goes beyond what its giver has is refused, and what is missing is named', async () => {
    const browser = await hub.logIn('eve', testPassword);
    const before = await roleNames();
    const refused = await give({ place: 'staff' }, { browser });
    expect([refused.status, refused.problem]).toEqual([
      403,
      expect.stringContaining('This role may do more than you may.'),
    ]);
    expect(refused.problem).toContain('“List groups” (list:groups!group=staff)');
    expect(await roleNames()).toEqual(before);
  });
});
