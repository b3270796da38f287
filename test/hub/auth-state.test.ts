import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formPluginSource } from '../support/form-plugin.ts';
import { adminToken, createUsers, tokenOf } from '../support/server-hub.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

/** A login that keeps a secret of each user. */
const plugin = formPluginSource({
  name: 'keeping',
  userFields: `authState: { token: 'secret of ' + name }`,
});

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-auth-state-'));
  await mkdir(join(directory, 'plugins'));
  await writeFile(join(directory, 'plugins', 'keeping.ts'), plugin);
});
afterAll(() => rm(directory, { recursive: true }));

const startHub = (authenticator: Readonly<Record<string, unknown>>): Promise<TestHub> =>
  createTestHub({
    DummyAuthenticator: undefined,
    Hub: {
      plugins_dir: join(directory, 'plugins'),
      authenticator_class: 'keeping',
      services: [{ name: 'support', api_token: 'support-service-token' }],
      load_roles: [
        {
          name: 'support',
          scopes: ['read:users', 'admin:auth_state!user=ada'],
          services: ['support'],
        },
      ],
    },
    Authenticator: { admin_users: ['ada'], ...authenticator },
  });

async function send(hub: TestHub, path: string, token: string, patch?: object) {
  const answer = await hub.api(path, token, {
    method: patch === undefined ? 'GET' : 'PATCH',
    ...(patch === undefined ? {} : { body: JSON.stringify(patch) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> };
}

test('what a login left is told and replaced with its scope, and to no other caller', async () => {
  await using hub = await startHub({ enable_auth_state: true });
  await hub.logIn('bob', 'x');
  await hub.logIn('ada', 'x');
  const kept = { token: 'secret of bob' };
  expect((await send(hub, '/users/bob', adminToken)).body['auth_state']).toEqual(kept);
  const one = await tokenOf(hub, 'ada', ['read:users', 'admin:auth_state!user=bob']);
  expect((await send(hub, '/users/bob', one)).body['auth_state']).toEqual(kept);
  expect((await send(hub, '/users/ada', one)).body).not.toHaveProperty('auth_state');

  const reader = await tokenOf(hub, 'ada', ['read:users', 'list:users']);
  const own = await tokenOf(hub, 'bob', ['self']);
  for (const [path, token] of [
    ['/users/bob', reader],
    ['/users/bob', own],
    ['/user', own],
    ['/users', adminToken],
    ['/users?include_stopped_servers=1', adminToken],
  ] as const) {
    expect((await send(hub, path, token)).text, path).not.toMatch(/auth_state":|secret of/);
  }
  // What an administrator holds elsewhere is not for one who was given a few users.
  const ofAda = await send(hub, '/users/ada', 'support-service-token');
  expect(ofAda).toMatchObject({ status: 200 });
  expect(ofAda.body).not.toHaveProperty('auth_state');

  expect(await send(hub, '/users/bob', adminToken, { auth_state: { token: 'new' } })).toMatchObject(
    {
      status: 200,
    },
  );
  expect((await send(hub, '/users/bob', adminToken)).body['auth_state']).toEqual({ token: 'new' });
  await send(hub, '/users/bob', adminToken, { auth_state: null });
  expect((await send(hub, '/users/bob', adminToken)).body['auth_state']).toBeNull();
  for (const auth_state of ['text', 1, []]) {
    expect((await send(hub, '/users/bob', adminToken, { auth_state })).status).toBe(400);
  }
});

test('without a login there is no state to tell or to replace', async () => {
  await using hub = await startHub({ enable_auth_state: true });
  await createUsers(hub, 'new');
  expect((await send(hub, '/users/new', adminToken)).body['auth_state']).toBeNull();
  expect(await send(hub, '/users/new', adminToken, { auth_state: {} })).toMatchObject({
    status: 409,
    body: { hint: expect.stringContaining('log in') },
  });
});

test('a hub that keeps none says so, and changes nothing of the rest', async () => {
  await using hub = await startHub({});
  await hub.logIn('bob', 'x');
  expect((await send(hub, '/users/bob', adminToken)).body['auth_state']).toBeNull();
  const change = { admin: true, auth_state: {} };
  expect(await send(hub, '/users/bob', adminToken, change)).toMatchObject({
    status: 400,
    body: { hint: expect.stringContaining('enable_auth_state') },
  });
  expect((await send(hub, '/users/bob', adminToken)).body).toMatchObject({ admin: false });
});
