import { expect, test } from 'vitest';
import {
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  onceReportedTo,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  tellToGo,
  untilServer,
} from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

/** Listens where its first argument says and reports what it was asked; `/well` alone is no error. */
const telling = `require('node:http').createServer((request, response) => {
  response.statusCode = request.url === '/well' || request.headers['x-hub-user'] ? 200 : 503;
  response.setHeader('content-type', 'application/json');
  const { url, headers } = request;
  response.end(JSON.stringify({ url, headers, args: process.argv.slice(2), port: process.env.PORT }));
}).listen(process.argv[1])`;
const app = (...args: string[]) => [process.execPath, '-e', telling, ...args];
const path = serverPath('alice');

interface Report {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly port?: string;
}

async function ask(hub: TestHub, below: string): Promise<Report> {
  const browser = await hub.logIn('alice');
  return JSON.parse((await browser.open(`${hub.url}user/alice/${below}`)).body) as Report;
}

const addressOf = async (hub: TestHub) => String((await getServer(hub, path)).state?.['url']);

test('an app that does not know its path gets paths without it, on a socket of its own', async () => {
  await using hub = await createServerHub({
    Spawner: {
      cmd: app('{socket}', '{prefix}', '{base_url}'),
      strip_prefix: true,
      ready_path: '/well',
      identity_headers: { user: 'X-Remote-User' },
    },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, path);
  expect(await addressOf(hub)).toMatch(/^http\+unix:/);
  const report = await ask(hub, 'a/b?c=1');
  expect(report).toMatchObject({
    url: '/a/b?c=1',
    args: ['/user/alice/', `${hub.url}user/alice/`],
    headers: { 'x-remote-user': 'alice', 'x-forwarded-prefix': '/user/alice' },
  });
  expect(report.port).toBeUndefined();
});

test('a profile says for itself how its app is reached, also after another one was chosen', async () => {
  await using hub = await createServerHub({
    Spawner: {
      profiles: [
        { name: 'knows', cmd: app('{port}') },
        { name: 'plain', cmd: app('{socket}'), strip_prefix: true, ready_path: '/well' },
        {
          name: 'names',
          cmd: app('{port}'),
          strip_prefix: true,
          ready_path: '/well',
          host: 'upstream',
          identity_headers: { user: 'X-Who' },
        },
        { name: 'own', cmd: fixtureApp('gateway-app'), access: 'server' },
      ],
      http_timeout: 2,
    },
  });
  await createUsers(hub, 'alice');
  const start = (profile: string) => startServer(hub, path, { profile });
  const isUp = () => untilServer(hub, path, ({ ready }) => ready, 'it is ready');

  await start('plain');
  await isUp();
  expect((await ask(hub, 'x')).url).toBe('/x');
  await stopServer(hub, path);
  await start('names');
  await isUp();
  const { headers, port } = await ask(hub, 'x');
  expect(headers).toMatchObject({ 'x-who': 'alice', host: `127.0.0.1:${port}` });
  expect(`http://127.0.0.1:${port}`).toBe(await addressOf(hub));
  await stopServer(hub, path);

  // It is asked below its prefix, which is no `/well` to it.
  await start('knows');
  const { failure } = await untilServer(hub, path, ({ failure }) => failure !== null, 'it fails');
  expect(failure?.message).toMatch(/did not answer within 2 seconds.*503/);

  await start('own');
  await isUp();
  const anonymous = await fetch(`${hub.url}user/alice/`, { redirect: 'manual' });
  expect(anonymous.headers.get('www-authenticate') ?? '').not.toContain('hub');
});

test('an app that opens its socket late is waited for, and one that never does is given up', async () => {
  const late = onceReportedTo(...app('{socket}'));
  await using hub = await createServerHub({
    Spawner: {
      profiles: [
        { name: 'late', cmd: late },
        { name: 'never', cmd: [...fixtureApp('never-listens'), '{socket}'] },
      ],
      strip_prefix: true,
      ready_path: '/well',
      slow_start_timeout: 0,
      http_timeout: 5,
    },
  });
  await createUsers(hub, 'alice', 'bob');
  await startServer(hub, path, { profile: 'late' });
  await tellToGo(hub, 'alice');
  await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  const never = serverPath('bob');
  await startServer(hub, never, { profile: 'never' });
  const { failure } = await untilServer(hub, never, (bob) => bob.failure !== null, 'it fails');
  expect(failure?.message).toMatch(/nothing listens on http\+unix:/);
});
