import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { usersOpenServices } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

interface Result {
  readonly title: string;
  readonly kind: string;
  readonly url: string;
}

describe('the search of everything', () => {
  let hub: TestHub;
  let root: FakeBrowser;
  let alice: FakeBrowser;
  beforeAll(async () => {
    hub = await createTestHub({
      Hub: {
        allow_named_servers: true,
        services: [
          { name: 'gallery', url: 'http://127.0.0.1:9', info: { title: 'Pictures of al' } },
          { name: 'secret', url: 'http://127.0.0.1:9', info: { title: 'Alarms' } },
        ],
        load_groups: [{ name: 'course', users: ['alice', 'alan'] }],
        load_roles: [
          ...usersOpenServices,
          {
            name: 'lead',
            users: ['lea'],
            scopes: ['admin-ui', 'list:users!group=course', 'read:users!group=course'],
          },
        ],
      },
      Authenticator: { admin_users: ['root'], allowed_users: ['alice', 'alan', 'lea', 'alex'] },
      Spawner: { cmd: [process.execPath, '-e', 'setInterval(() => {}, 1000)'] },
    });
    for (const name of ['alan', 'alex']) await hub.logIn(name);
    root = await hub.logIn('root');
    alice = await hub.logIn('alice');
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  async function find(browser: FakeBrowser, search: string): Promise<readonly Result[]> {
    const { status, body } = await browser.request(
      `${hub.url}hub/search?${new URLSearchParams({ search })}`,
      { headers: { accept: 'application/json' } },
    );
    expect(status).toBe(200);
    return JSON.parse(body).results;
  }
  const titles = async (browser: FakeBrowser, search: string) =>
    (await find(browser, search)).map(({ title }) => title);

  test('finds services, users and pages for those who may see them, and nothing for others', async () => {
    expect(await titles(root, 'al')).toEqual(expect.arrayContaining(['alan', 'alex', 'alice']));
    expect(await titles(alice, 'al')).toEqual(['Pictures of al', 'Alarms']);
    expect(await titles(root, 'announce')).toEqual(['Announcements']);
    expect(await titles(alice, 'announce')).toEqual([]);
    expect(await find(alice, 'token')).toEqual([
      { title: 'Tokens', kind: 'Page', url: '/hub/account#tokens' },
    ]);
  });

  test('finds groups for those who may see them, each with the name that a field takes', async () => {
    expect(await find(root, 'cour')).toEqual([
      {
        ...{ title: 'course', kind: 'Group', url: '/hub/admin/groups/course' },
        ...{ type: 'group', name: 'course' },
      },
    ]);
    for (const browser of [alice, await hub.logIn('lea')])
      expect(await titles(browser, 'cour')).toEqual([]);
  });

  test('finds for a course lead the users of the course alone', async () => {
    const lea = await hub.logIn('lea');
    expect((await titles(lea, 'al')).slice(2)).toEqual(['alan', 'alice']);
  });

  test('finds the own servers, and at most eight of a kind', async () => {
    for (let index = 0; index < 9; index += 1) {
      const home = await alice.open(`${hub.url}hub/home`);
      await submitTo(alice, home, '/hub/create-server', { name: `thesis-${index}` });
    }
    const found = await find(alice, 'thesis');
    expect(found).toHaveLength(8);
    expect(found[0]).toEqual({
      title: 'thesis-0',
      kind: 'Server',
      url: '/hub/servers/alice/thesis-0',
      type: 'server',
      name: 'alice/thesis-0',
    });
    expect(await titles(root, 'thesis')).toEqual([]);
    expect((await titles(root, 'alice')).slice(7)).toEqual(['thesis-7', 'alice']);
  });

  test('shows the same as a page where there are no scripts', async () => {
    const { body } = await root.open(`${hub.url}hub/search?search=alan`);
    expect(body).toContain('<a href="/hub/admin/users/alan">alan</a><p>User alan</p>');
    expect((await root.open(`${hub.url}hub/search?search=%3Cb%3E`)).body).toContain(
      'Nothing found.',
    );
  });
});
