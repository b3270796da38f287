import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain } from '../support/pages.ts';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  fixtureApp,
  guarded,
  serverPath,
  startUntilReady,
  stopServer,
} from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

// What a visitor allowed a server ends with it: the next of that name has to ask.

let hub: TestHub;
let alice: FakeBrowser;

beforeEach(async () => {
  hub = await createServerHub({
    Hub: {
      allow_named_servers: true,
      load_roles: [{ name: 'user', scopes: ['self', 'access:servers'] }],
    },
    Spawner: { access: 'server', cmd: guarded(...fixtureApp('plain-web-app')) },
  });
  await createUsers(hub, 'alice', 'bob');
  alice = await hub.logIn('alice');
});
afterEach(async () => hub[Symbol.asyncDispose]());

const isAsked = (url: string) => new URL(url).pathname === '/hub/open-server';

/** Opens a server as one who is asked first, and says yes. */
async function open(path: string): Promise<void> {
  const question = await alice.open(hub.url + path);
  expect(isAsked(question.url), question.url).toBe(true);
  await submitMain(alice, question, {});
  const opened = await alice.open(hub.url + path);
  expect([opened.status, new URL(opened.url).pathname]).toEqual([200, `/${path}`]);
}

const authorize = (clientId: string, path: string) =>
  alice.request(
    `${hub.url}hub/api/oauth2/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: `/${path}oauth_callback`,
      state: 'state',
    })}`,
  );

/** How many codes and tokens others gave to a client. */
function grantsOf(clientId: string): unknown {
  using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'), { readOnly: true });
  const count = (table: string) =>
    database.prepare(`select count(*) as n from ${table} where client_id = ?`).get(clientId)?.['n'];
  return { codes: count('authorization_codes'), tokens: count('access_tokens') };
}

const admin = (method: string, path: string, body?: unknown) =>
  callApi(hub, adminToken, method, path, body);

test.each([
  ['is deleted', () => admin('DELETE', '/users/bob')],
  ['gets another name', () => admin('PATCH', '/users/bob', { name: 'robert' })],
])('of a user who %s', async (_what, end) => {
  await startUntilReady(hub, serverPath('bob'));
  await open('user/bob/');
  // A code that is not exchanged yet, without a question because of what was said before.
  expect((await authorize('hub-user-bob', 'user/bob/')).status).toBe(302);
  expect(grantsOf('hub-user-bob')).not.toMatchObject({ tokens: 0 });
  expect(grantsOf('hub-user-bob')).not.toMatchObject({ codes: 0 });

  expect((await end()).status).toBeLessThan(300);
  expect(grantsOf('hub-user-bob')).toEqual({ codes: 0, tokens: 0 });
  await createUsers(hub, 'bob');
  // The files of the first one stay theirs.
  expect((await admin('PATCH', '/users/bob', { system_account: 'bob-2' })).status).toBe(200);
  await startUntilReady(hub, serverPath('bob'));
  expect(isAsked((await alice.open(`${hub.url}user/bob/`)).url)).toBe(true);
  const asked = await authorize('hub-user-bob', 'user/bob/');
  expect([asked.status, asked.body.includes('<form')]).toEqual([200, true]);
});

test('of a named server that is deleted', async () => {
  const path = serverPath('bob', 'lab');
  await startUntilReady(hub, path);
  await open('user/bob/lab/');
  expect(grantsOf('hub-user-bob-lab')).not.toMatchObject({ tokens: 0 });
  expect((await stopServer(hub, path, { remove: true })).status).toBe(204);
  expect(grantsOf('hub-user-bob-lab')).toEqual({ codes: 0, tokens: 0 });
  await startUntilReady(hub, path);
  expect(isAsked((await alice.open(`${hub.url}user/bob/lab/`)).url)).toBe(true);
  expect((await authorize('hub-user-bob-lab', 'user/bob/lab/')).status).toBe(200);
});

test('but not by a stop', async () => {
  const path = serverPath('bob');
  await startUntilReady(hub, path);
  await open('user/bob/');
  await stopServer(hub, path);
  await startUntilReady(hub, path);
  expect(isAsked((await alice.open(`${hub.url}user/bob/`)).url)).toBe(false);
});
