import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { type TestHub, unescapeHtml } from '../support/test-hub.ts';

/** Parts of the administration, each as one of its users may hold it. */
const rights: Readonly<Record<string, readonly string[]>> = {
  names: ['list:users', 'read:users:name', 'list:groups', 'read:groups:name'],
  lead: ['list:groups!group=g1', 'read:groups:name!group=g1', 'list:users!group=g1'],
  readsusers: ['list:users', 'read:users'],
  readsgroups: ['list:groups', 'read:groups', 'read:roles:groups'],
  readsroles: ['read:roles'],
  readsservices: ['list:services', 'read:services'],
  readsone: ['list:users!user=uma', 'read:users!user=uma', 'read:roles:users!user=uma'],
  audits: ['read:audit'],
};

let hub: TestHub;
beforeAll(async () => {
  const names = Object.keys(rights);
  hub = await createPasswordHub([...names, 'uma'], {
    Hub: {
      load_groups: [
        { name: 'g1', users: ['uma'] },
        { name: 'g2', users: ['uma', 'lead'] },
      ],
      load_roles: [
        ...names.map((name) => ({
          name,
          scopes: ['admin-ui', ...(rights[name] ?? [])],
          users: [name],
        })),
        { name: 'held', scopes: ['list:services'], groups: ['g1', 'g2'], users: ['uma'] },
      ],
      services: [{ name: 'wiki', url: 'http://127.0.0.1:9', access: 'gateway' }],
    },
  });
});
afterAll(() => hub?.[Symbol.asyncDispose]());

test.each(Object.keys(rights))('%s is led to no page that is closed to them', async (name) => {
  const visitor = await hub.logIn(name, testPassword);
  const seen = new Set<string>();
  const waiting = [
    '/hub/admin',
    '/hub/admin/users',
    '/hub/admin/servers',
    '/hub/admin/groups',
    '/hub/admin/roles',
    '/hub/admin/services',
  ];
  const closed: string[] = [];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const page = await visitor.request(new URL(path, hub.url).href);
    if (page.status === 302 || page.status === 303) continue;
    if (page.status >= 400 && seen.size > 6) closed.push(`${page.status} ${path}`);
    for (const [, link = ''] of page.body.matchAll(/<a [^>]*href="(\/hub\/admin[^"]*)"/g))
      waiting.push(unescapeHtml(link));
  }
  expect(closed).toEqual([]);
});
