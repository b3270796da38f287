import type { IncomingHttpHeaders } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let token: string;
let reached: IncomingHttpHeaders | undefined;
beforeAll(async () => {
  const app = await startUpstream((req, res) => {
    reached = req.headers;
    res.end('the app');
  });
  hub = await createTestHub({
    Hub: {
      load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      services: [{ name: 'app', url: app.url, access: 'gateway' }],
    },
  });
  await untilState(hub, 'app', 'ready');
  await hub.logIn('alice');
  const init = { method: 'POST', body: '{}' };
  const made = await hub.api('/users/alice/tokens', 'admin-service-token', init);
  ({ token } = (await made.json()) as { token: string });
  return async () => {
    await hub[Symbol.asyncDispose]();
    await app[Symbol.asyncDispose]();
  };
});

const basic = (password: string, name = 'alice') =>
  `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
const addresses = { 'a guarded route': 'services/app/', 'the API': 'hub/api/user' } as const;

function ask(path: string, headers: Record<string, string>) {
  // What Node.js says of its own requests is what no other program says.
  return fetch(hub.url + path, { redirect: 'manual', headers: { accept: '*/*', ...headers } });
}

test.for(Object.entries(addresses))(
  '%s takes a token as the password of Basic',
  async ([, path]) => {
    for (const name of ['alice', '', 'bob', 'jürgen']) {
      expect((await ask(path, { authorization: basic(token, name) })).status).toBe(200);
    }
  },
);

test('the app behind a guarded route does not see the token', async () => {
  await ask(addresses['a guarded route'], { authorization: basic(token) });
  expect(reached).toMatchObject({ 'x-hub-user': 'alice' });
  expect(reached).not.toHaveProperty('authorization');
});

test.for([
  [addresses['a guarded route'], 401],
  [addresses['the API'], 403],
] as const)('%s refuses a password with %d', async ([path, status]) => {
  for (const password of ['test', `${token}:`, `:${token}`, 'x'.repeat(5_000)]) {
    const answer = await ask(path, { authorization: basic(password) });
    expect(answer.status).toBe(status);
  }
});

test('a program without a token is offered Basic at a guarded route', async () => {
  const answer = await ask('services/app/', { accept: 'application/json' });
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="hub", Bearer realm="hub"/);
});

test('git is asked for a password where people are led to the login', async () => {
  const path = 'services/app/info/refs?service=git-upload-pack';
  const answer = await ask(path, { 'user-agent': 'git/2.39.5' });
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toMatch(/^Basic/);
});

const fromBrowsers = [
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
  { origin: 'https://evil.example' },
  { accept: 'text/html' },
  { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' },
];
test.for(
  Object.entries(addresses).flatMap(([name, path]) =>
    fromBrowsers.map((headers) => [name, path, headers] as const),
  ),
)('%s does not let a browser in that was given a password once: %o', async ([, path, headers]) => {
  const answer = await ask(path, { ...headers, authorization: basic(token) });
  expect(answer.status).not.toBe(200);
  expect(answer.headers.get('www-authenticate') ?? '').not.toContain('Basic');
});
