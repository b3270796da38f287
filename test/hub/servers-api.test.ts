import { expect, test } from 'vitest';
import {
  createServerHub,
  createUsers,
  getServer,
  isAlive,
  serverPath,
  startServer,
  stopServer,
} from '../support/server-hub.ts';

test('a server is started by the API, answers at its address, and is stopped', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'alice');
  const path = serverPath('alice');
  const started = await startServer(hub, path);
  expect(started.status).toBe(201);
  expect(await started.json()).toMatchObject({
    name: '',
    ready: true,
    pending: null,
    url: '/user/alice/',
  });
  const { state } = await getServer(hub, path);
  const browser = await hub.logIn('alice');
  const page = await browser.open(`${hub.url}user/alice/some/page?x=1`);
  expect(page.status).toBe(200);
  expect(JSON.parse(page.body)).toMatchObject({ url: '/user/alice/some/page?x=1' });
  expect((await startServer(hub, path)).status).toBe(400);
  expect((await stopServer(hub, path)).status).toBe(204);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
  expect(await getServer(hub, path)).toMatchObject({ ready: false, stopped: true, failure: null });
  expect((await stopServer(hub, path)).status).toBe(204);
});
