import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { type StatementWatch, watchStatements } from '../support/statements.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

const token = 'admin-service-token';
const names = Array.from({ length: 220 }, (_, index) => `user-${String(index).padStart(3, '0')}`);
const [collector = '', occasional = ''] = names;

let hub: TestHub;
let browser: FakeBrowser;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      load_roles: [{ name: 'reader', scopes: ['read:users'], users: names.slice(0, 100) }],
    },
    Authenticator: { admin_users: ['root'] },
  });
  await post('/users', { usernames: names.slice(100) });
  await post('/groups', { groups: names.map((name) => `group-of-${name}`), users: [collector] });
  await Promise.all(
    names.map((name) => post(`/groups/group-of-${name}/users`, { users: [name, occasional] })),
  );
  for (let made = 0; made < 40; made++) await post(`/users/${collector}/tokens`, {});
  await post(`/users/${occasional}/tokens`, {});
  browser = await hub.logIn('root');
  for (const name of names.slice(0, 60)) {
    await post(`/shares/${collector}/`, name === collector ? { user: 'root' } : { user: name });
    await post(`/shares/${occasional}/`, { group: `group-of-${name}` });
    if (name !== occasional) await post(`/shares/${name}/`, { user: occasional });
  }
  for (let made = 0; made < 40; made++) await post(`/share-codes/${collector}/`, {});
});
afterAll(() => hub[Symbol.asyncDispose]());

async function post(path: string, body: unknown): Promise<void> {
  const answer = await hub.api(path, token, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

async function lengthOf(path: string): Promise<number> {
  const answer = await hub.api(path, token);
  const body = (await answer.json()) as unknown[] | Record<string, unknown>;
  const list = Array.isArray(body) ? body : (body['api_tokens'] ?? body['items'] ?? body);
  return Object.keys(list).length;
}

async function countDuring(watch: StatementWatch, work: () => Promise<unknown>): Promise<number> {
  return (await watch.during(work)).length;
}

/** What the hub reads now and then for itself may fall into one of the counts, but not into each of three. */
async function minOf(count: () => Promise<number>): Promise<number> {
  return Math.min(await count(), await count(), await count());
}

test.each([
  ['users', '/users?limit=10', '/users?limit=200', 10, 200],
  ['the last users', '/users?limit=10&offset=200', '/users?limit=200&offset=21', 10, 200],
  ['groups', '/groups?limit=10', '/groups?limit=200', 10, 200],
  ['shares of a server', `/shares/${collector}/?limit=1`, `/shares/${collector}/`, 1, 60],
  ['shares of groups', `/shares/${occasional}?limit=1`, `/shares/${occasional}`, 1, 60],
  ['codes', `/share-codes/${collector}?limit=1`, `/share-codes/${collector}`, 1, 40],
  ['shared servers', `/users/root/shared`, `/users/${occasional}/shared`, 1, 119],
  ['tokens', `/users/${occasional}/tokens`, `/users/${collector}/tokens`, 1, 40],
])('a list of %s takes as many queries for many as for few', async (_, few, many, min, max) => {
  using watch = watchStatements();
  // What is remembered of earlier requests must not make the later one look cheap.
  await hub.api(many, token);
  await hub.api(few, token);
  const countOf = async (path: string, length: number) => {
    // After that a page is read again, although no right has changed.
    await post('/users', { usernames: [`z-${randomUUID()}`] });
    return countDuring(watch, async () => expect(await lengthOf(path)).toBe(length));
  };
  const forFew = await minOf(() => countOf(few, min));
  expect(forFew).toBeGreaterThan(0);
  expect(await minOf(() => countOf(many, max))).toBe(forFew);
});

test('a page of users is not read again until something is written', async () => {
  using watch = watchStatements();
  const newest = async () => {
    const answer = await hub.api('/users?limit=1&sort=-id', token);
    return ((await answer.json()) as User[])[0]?.name;
  };
  // It is remembered for a second only, which a busy machine may take between two requests.
  await until(async () => {
    await newest();
    return (await countDuring(watch, newest)) === 0;
  }, 'the page is remembered');
  await post('/users', { usernames: ['newest'] });
  expect(await newest()).toBe('newest');
});

test('the home page takes as many queries for many shared servers as for one', async () => {
  using watch = watchStatements();
  const queriesOf = async (name: string, rows: number) => {
    const visitor = await hub.logIn(name);
    const home = async () => {
      const { body } = await visitor.request(`${hub.url}hub/home`);
      expect(body.split('<tr>').length - 2).toBe(rows);
    };
    await home();
    return minOf(() => countDuring(watch, home));
  };
  const few = await queriesOf(names[2] ?? '', 2);
  expect(await queriesOf(occasional, 59)).toBe(few);
});

test('the list of users takes as many queries when no rights of its users are known yet', async () => {
  using watch = watchStatements();
  const countOf = async (path: string) => {
    // Any change makes the hub forget what it remembered.
    await post('/groups', { groups: [`late-${randomUUID()}`] });
    return countDuring(watch, () => lengthOf(path));
  };
  const few = await minOf(() => countOf('/users?limit=10'));
  expect(await minOf(() => countOf('/users?limit=200'))).toBe(few);
});

test('the users of the administration take as many queries for many as for few', async () => {
  using watch = watchStatements();
  const rowsOf = async (search: string) => {
    const { body } = await browser.request(`${hub.url}hub/admin/users?search=${search}`);
    return body.split('<tr').length;
  };
  expect(await rowsOf('user-00')).toBeLessThan(await rowsOf('user-'));
  const countOf = (search: string) => minOf(() => countDuring(watch, () => rowsOf(search)));
  const few = await countOf('user-00');
  expect(await countOf('user-')).toBe(few);
});

test('who asks and what users hold is looked up once, until something changes', async () => {
  using watch = watchStatements();
  const path = `/users/${occasional}`;
  const { token: own } = (await (
    await hub.api(`${path}/tokens`, token, { method: 'POST', body: '{}' })
  ).json()) as { token: string };
  const asked = [
    { path: '/user', by: token, queries: 0 },
    { path, by: token, queries: 2 },
    { path, by: own, queries: 2 },
    { path: '/user', by: own, queries: 1 },
  ];
  for (const { path, by } of asked) await hub.api(path, by);
  for (const { path, by, queries } of asked) {
    const count = () => countDuring(watch, () => hub.api(path, by));
    expect(await minOf(count), path).toBe(queries);
  }
  await hub.api('/users?limit=200', token);
  // For one on another page, the caller's roles, users, their number and servers, but not what they hold.
  const afterOther = async () => {
    await post('/users', { usernames: [`elsewhere-${randomUUID()}`] });
    return countDuring(watch, () => hub.api('/users?limit=200', token));
  };
  expect(await minOf(afterOther)).toBe(4);

  const groupsOf = async (path: string) => {
    const model = (await (await hub.api(path, token)).json()) as User | User[];
    return [model].flat().find(({ name }) => name === occasional)?.groups;
  };
  await post('/groups', { groups: ['brand-new'], users: [occasional] });
  expect(await groupsOf(path)).toContain('brand-new');
  expect(await groupsOf('/users?limit=200')).toContain('brand-new');
  await hub.api('/groups/brand-new', token, { method: 'DELETE' });
  expect(await groupsOf('/users?limit=200')).not.toContain('brand-new');
  const admin = { method: 'PATCH', body: '{"admin":true}' };
  expect(await (await hub.api(path, token, admin)).json()).toMatchObject({
    roles: ['admin', 'reader', 'user'],
  });
});

test('a user who is made together with many others costs no query alone', async () => {
  using watch = watchStatements();
  const create = (count: number) =>
    post('/users', { usernames: Array.from({ length: count }, () => `made-${randomUUID()}`) });
  await create(1);
  const min = (count: number) => minOf(() => countDuring(watch, () => create(count)));
  const few = await min(10);
  expect(await min(200)).toBe(few);
});

test('a report of activity takes as many queries for many servers as for few', async () => {
  using watch = watchStatements();
  const own = await (
    await hub.api(`/users/${occasional}/tokens`, token, { method: 'POST' })
  ).json();
  const last_activity = new Date().toISOString();
  const report = async (count: number) => {
    const servers = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`lab-${index}`, { last_activity }]),
    );
    const answer = await hub.api(
      `/users/${occasional}/activity`,
      (own as { token: string }).token,
      { method: 'POST', body: JSON.stringify({ servers }) },
    );
    expect(answer.status).toBe(400);
    // What the report asked for without waiting has its turn before this. Not a page of users: that is remembered
    // for a second, so that on a busy machine it would cost nothing once and be read again the next time.
    await lengthOf('/groups?limit=1');
  };
  await report(1);
  const min = (count: number) => minOf(() => countDuring(watch, () => report(count)));
  const few = await min(1);
  expect(few).toBeGreaterThan(0);
  expect(await min(10_000)).toBe(few);
});
