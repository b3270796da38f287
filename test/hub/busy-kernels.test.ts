import { execPath } from 'node:process';
import { expect, test } from 'vitest';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';

const notebook = { path: 'secret-plan.ipynb', kernel: { execution_state: 'busy' } };
const app = `require('node:http')
  .createServer((request, response) => response.end('${JSON.stringify([notebook])}'))
  .listen(Number(process.argv[1]), '127.0.0.1')`;

test('what a busy kernel is called is told to who may open the server, and to nobody else', async () => {
  await using hub = await createServerHub({
    Hub: {
      load_roles: [
        {
          name: 'watcher',
          scopes: ['self', 'admin-ui', 'read:users', 'read:servers!user=alice'],
          users: ['eve'],
        },
      ],
    },
    Spawner: {
      cmd: [execPath, '-e', app, '{port}'],
      access: 'gateway',
      idle_timeout_seconds: 3600,
      kernels_path: '/api/sessions',
    },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, serverPath('alice'));
  const path = serverPath('alice');
  const server = await untilServer(hub, path, ({ stops_at: at }) => at !== null, 'it has limits');
  expect(server).toMatchObject({
    busy_kernels: ['secret-plan.ipynb'],
  });
  const { body: users } = await callApi(hub, adminToken, 'GET', '/users');
  expect(JSON.stringify(users)).not.toContain('secret-plan');

  const page = async (name: string) =>
    (await (await hub.logIn(name)).open(`${hub.url}hub/servers/alice`)).body;
  expect(await page('alice')).toContain('A kernel is calculating (secret-plan.ipynb), which');
  const seen = await page('eve');
  expect(seen).toContain('A kernel is calculating, which counts as use');
  expect(seen).not.toContain('secret-plan');
  const { body: made } = await callApi(hub, adminToken, 'POST', '/users/eve/tokens', {});
  const shown = await callApi(hub, made.token, 'GET', path);
  expect(shown.body).toMatchObject({ ready: true });
  expect(shown.body).not.toHaveProperty('busy_kernels');
});
