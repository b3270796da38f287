import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  adminToken,
  createServerHub,
  serverPath,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

/** What each service of this hub may do; its token is `token-of-<name>`. */
const scopesByService = {
  names: ['list:users', 'list:services'],
  roles: ['list:users', 'read:roles'],
  users: ['list:users', 'read:users'],
  groups: ['list:users', 'read:users:groups'],
  activity: ['list:users', 'read:users:activity'],
  servers: ['list:users', 'read:servers'],
  info: ['list:users', 'read:users:info'],
  state: ['list:users', 'admin:servers'],
  own: ['read:servers', 'admin:server_state!server=ann/lab'],
  one: ['read:servers!server=ann/lab', 'admin:server_state!server=ann/lab'],
} as const;

let hub: TestHub;

beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      allow_named_servers: true,
      services: Object.keys(scopesByService).map((name) => ({
        name,
        api_token: `token-of-${name}`,
      })),
      load_roles: [
        ...Object.entries(scopesByService).map(([name, scopes]) => ({
          name: `role-of-${name}`,
          scopes,
          services: [name],
        })),
        { name: 'role-of-the-lab', scopes: ['read:hub'], groups: ['lab'] },
      ],
      load_groups: [{ name: 'lab', users: ['ann'] }],
    },
    Authenticator: { admin_users: ['ada'] },
  });
  await startUntilReady(hub, serverPath('ann'));
  await startUntilReady(hub, serverPath('ann', 'lab'));
});

afterAll(() => hub?.[Symbol.asyncDispose]());

type Model = Record<string, unknown> & { readonly servers?: Record<string, object> };

async function get<Answer = Model>(path: string, token: string): Promise<Answer> {
  const answer = await hub.api(path, token);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Answer;
}

describe('a user', () => {
  test('is shown with the one server that a scope names', async () => {
    const model = await get('/users/ann', 'token-of-one');
    expect(Object.keys(model).toSorted()).toEqual(['kind', 'name', 'servers']);
    expect(model.servers).toEqual({ lab: expect.objectContaining({ state: expect.anything() }) });
    expect((await hub.api('/users/ada', 'token-of-one')).status).toBe(404);
  });

  const whole = ['admin', 'created', 'groups', 'kind', 'last_activity', 'name', 'pending', 'roles'];

  test.each([
    ['names', ['admin', 'kind', 'name']],
    ['roles', ['admin', 'kind', 'name', 'roles']],
    ['users', [...whole, 'server', 'suspended']],
    ['groups', ['admin', 'groups', 'kind', 'name']],
    ['activity', ['admin', 'kind', 'last_activity', 'name']],
    ['servers', ['admin', 'kind', 'name', 'pending', 'server', 'servers']],
    ['info', ['admin', 'kind', 'name', 'user_info']],
  ])('shows the service %s, in a list and alone, %j', async (service, members) => {
    const token = `token-of-${service}`;
    const list = await get<Model[]>('/users', token);
    expect(list.map(({ name }) => name).toSorted()).toEqual(['ada', 'ann']);
    for (const model of list) expect(Object.keys(model).toSorted()).toEqual(members);
    expect(Object.keys(await get('/users/ann', token)).toSorted()).toEqual(members);
  });

  test('says whether it is an administrator, and which roles it holds', async () => {
    const list = await get<Model[]>('/users', 'token-of-roles');
    expect(list.find(({ name }) => name === 'ada')).toMatchObject({
      admin: true,
      roles: expect.arrayContaining(['admin', 'user']),
    });
    expect(list.find(({ name }) => name === 'ann')).toMatchObject({ admin: false });
  });

  test('names the roles of its own, and not those that its groups hold', async () => {
    expect(await get('/users/ann', 'token-of-roles')).toMatchObject({ roles: ['user'] });
    expect(await get('/user', await tokenOf(hub, 'ann'))).toMatchObject({ roles: ['user'] });
  });

  test('is told about itself by a token that may do nothing else', async () => {
    const token = await tokenOf(hub, 'ann', ['read:users:name!user']);
    expect(await get('/user', token)).toMatchObject({ name: 'ann', admin: false });
  });
});

describe('what a spawner keeps of a server', () => {
  test('is shown to those who may read it, also in lists', async () => {
    for (const [token, isShown] of [
      ['token-of-state', true],
      [adminToken, true],
      ['token-of-servers', false],
    ] as const) {
      const [ann] = (await get<Model[]>('/users?name_filter=ann', token)) ?? [];
      const servers = Object.values(ann?.servers ?? {});
      expect(servers).toHaveLength(2);
      for (const server of servers) expect(Object.hasOwn(server, 'state')).toBe(isShown);
    }
    const { servers } = await get('/users/ann', 'token-of-state');
    expect(servers?.['']).toMatchObject({ state: { pid: expect.any(Number) } });
  });

  test('is shown of that one server for which the scope is held', async () => {
    const { servers } = await get('/users/ann', 'token-of-own');
    expect(servers?.['lab']).toHaveProperty('state');
    expect(servers?.['']).not.toHaveProperty('state');
  });
});

test('a service shows that it is an administrator to those who may know its name', async () => {
  const services = await get<Record<string, Model>>('/services', 'token-of-names');
  expect(services['admin-service']).toEqual({
    kind: 'service',
    name: 'admin-service',
    admin: true,
  });
  expect(services['names']).toEqual({ kind: 'service', name: 'names', admin: false });
});
