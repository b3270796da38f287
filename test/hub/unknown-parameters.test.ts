import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { fixtureApp } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let ada: FakeBrowser;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob'], {
    Spawner: {
      cmd: fixtureApp('web-server'),
      profiles: [
        { name: 'small', display_name: 'Small' },
        { name: 'large', display_name: 'Large' },
      ],
    },
    Hub: {
      allow_named_servers: true,
      load_groups: [{ name: 'crew', users: ['bob'] }],
      services: [{ name: 'wiki', url: 'http://127.0.0.1:9', api_token: 'wiki-service-token' }],
    },
  });
  ada = await hub.logIn('ada', testPassword);
});
afterAll(() => hub[Symbol.asyncDispose]());

const notice = 'which this page doesn’t know and ignores.';
const open = async (path: string, language = 'en') => {
  const { status, body } = await ada.request(`${hub.url}hub/${path}`, {
    headers: { 'accept-language': language },
  });
  return { status, body: body.replaceAll('&amp;', '&') };
};

test.each([
  ['admin/users', 'serach=bob&sort=-name', 'serach', 'search', 'search=bob&sort=-name'],
  ['admin/users', 'group=crew&Search=bob', 'Search', 'search', 'group=crew&search=bob'],
  ['admin/users', 'serach=bob&search=ada', 'serach', 'search', 'search=ada'],
  ['admin/groups', 'serach=x', 'serach', 'search', 'search=x'],
  ['admin/groups/crew', 'aftre=x', 'aftre', 'after', 'after=x'],
  ['admin/servers', 'shwo=failed', 'shwo', 'show', 'show=failed'],
  // A value that cannot be.
  [
    'admin/users',
    'show=runing&sort=-name',
    'show=runing',
    'show=running',
    'show=running&sort=-name',
  ],
  ['admin/servers', 'show=faild&search=a', 'show=faild', 'show=failed', 'show=failed&search=a'],
  // Declared by the page itself.
  ['admin/services', 'serach=wiki', 'serach', 'search', 'search=wiki'],
  ['services', 'gruop=tools', 'gruop', 'group', 'group=tools'],
  ['admin/budgets', 'nmae=x', 'nmae', 'name', 'name=x'],
  ['admin/activity', 'acter=bob', 'acter', 'actor', 'actor=bob'],
])('%s?%s says that %s is passed over', async (path, query, name, meant, corrected) => {
  const { status, body } = await open(`${path}?${query}`);
  expect(status).toBe(200);
  expect(body).toContain(`The address asks for <code>${name}</code>, ${notice}`);
  expect(body).toContain(
    `<a href="/hub/${path}?${corrected}">Did you mean <code>${meant}</code>?</a>`,
  );
  expect((await open(`${path}?${corrected}`)).body).not.toContain(notice);
});

test('what resembles nothing is named, and the whole list is shown', async () => {
  const { body } = await open('admin/users?q=bob&role=admin');
  expect(body).toContain(`<code>q</code> and <code>role</code>, ${notice}`);
  expect(body).not.toContain('Did you mean');
  expect(body).toContain('/hub/admin/users/ada"');
  expect((await open('admin/lockouts?search=bob')).body).toContain(notice);
});

test('it is said in the language of the reader', async () => {
  const { body } = await open('admin/users?serach=bob', 'de');
  expect(body).toContain(
    'Die Adresse fragt nach <code>serach</code>; das kennt diese Seite nicht und übergeht es.',
  );
  expect(body).toContain('Meinten Sie <code>search</code>?');
});

test('whoever makes a link cannot make the page say something', async () => {
  const { body } = await open(
    'admin/users?Your+password+has+ended.+Call+555=1&%3Cimg+src%3Dx%3E=1&a=1&b=1&c=1',
  );
  expect(body).toContain(notice);
  expect(body.slice(body.indexOf('<main'))).not.toMatch(/Call|<img/);
});

test('the form of a server takes what its address fills in', async () => {
  const { status, body } = await open('spawn/ada?profile=large&whatever=1');
  expect(status).toBe(200);
  expect(body).not.toContain(notice);
});

test('no link and no search of a page leads to where it is passed over', async () => {
  const seen = new Set<string>();
  const pending = ['admin', 'home', 'account', 'services', 'search?search=a', 'admin/users/bob'];
  for (let path = pending.shift(); path !== undefined; path = pending.shift()) {
    const page = path.split('?')[0] ?? '';
    // One with each set of parameters.
    const names = [...new URLSearchParams(path.split('?')[1]).keys()].sort();
    const kind = `${page.replace(/\/(?:ada|bob)\b/, '/*')} ${names}`;
    if (seen.has(kind)) continue;
    seen.add(kind);
    const { body } = await open(path);
    expect(body, path).not.toContain(notice);
    for (const [, link = ''] of body.matchAll(/ href="\/hub\/([^"#]+)/g))
      if (!/^(?:static|logout|api|help)\b/.test(link)) pending.push(link);
    for (const [form] of body.matchAll(/<form\b[^>]* method="get"[\s\S]*?<\/form>/g)) {
      const [, action = ''] = / action="\/hub\/([^"#]*)/.exec(form) ?? [];
      const fields = [...form.matchAll(/ name="([^"]+)"/g)].map(([, name]) => `${name}=`);
      pending.push(`${action}?${fields.join('&')}`);
    }
  }
  const kinds = [...seen];
  expect(kinds).toContain('admin/users show');
  expect(kinds.filter((kind) => kind.startsWith('admin/activity action,'))).not.toEqual([]);
});
