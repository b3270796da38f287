import { expect, test } from 'vitest';
import {
  createServerHub,
  createUsers,
  getServer,
  serverPath,
  startServer,
  untilServer,
} from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

/** Sends a little all the time once it was asked, as a notebook does in a tab that is forgotten. */
const chatty = `require('node:http').createServer((request, response) => {
  if (!request.url.endsWith('/stream')) return response.end('ok');
  setInterval(() => response.write('still here '), 500);
}).listen(process.argv[1])`;

test('a calculation without a tab keeps its server, and a forgotten tab does not', async () => {
  await using hub = await createServerHub({
    Spawner: {
      profiles: [
        {
          name: 'busy',
          cmd: ['sh', '-c', 'while :; do :; done & exec "$@"', 'sh', ...trivialApp()],
        },
        { name: 'chatty', cmd: [process.execPath, '-e', chatty, '{port}'] },
      ],
      idle_timeout_seconds: 45,
    },
  });
  await createUsers(hub, 'alice', 'bob');
  const [working, forgotten] = [serverPath('alice'), serverPath('bob')];
  await startServer(hub, working, { profile: 'busy' });
  await startServer(hub, forgotten, { profile: 'chatty' });
  for (const path of [working, forgotten]) {
    await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  }
  const bob = await hub.logIn('bob');
  await bob.open(`${hub.url}user/bob/`);
  const address = `${hub.url}user/bob/stream`;
  const tab = await fetch(address, { headers: { cookie: bob.cookieHeader(address) } });
  const reader = tab.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('still here');

  await until(async () => (await getServer(hub, forgotten)).stopped, 'it is stopped');
  expect(await getServer(hub, forgotten)).toMatchObject({ stop_reason: 'idle_timeout' });
  expect(await getServer(hub, working)).toMatchObject({ ready: true });
  const { started, last_activity } = await getServer(hub, working);
  expect(Date.parse(last_activity ?? '')).toBeGreaterThan(Date.parse(started ?? ''));
});
