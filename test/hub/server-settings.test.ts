import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  onceReportedTo,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  submitFormTo,
  tellToGo,
  untilServer,
} from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

test('the environment of a server names its user and itself', async () => {
  await using hub = await createServerHub({
    Hub: { allow_named_servers: true },
    Spawner: {
      cmd: fixtureApp('prints-environment'),
      environment: { WHO: '{username}', DATA: '/data/{username}/{server}/x', JSON: '{"a":{}}' },
    },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, serverPath('alice'));
  await startUntilReady(hub, serverPath('alice', 'lab'));
  const browser = await hub.logIn('alice');
  const environmentAt = async (path: string) =>
    JSON.parse((await browser.open(hub.url + path)).body).environment as Record<string, string>;
  expect(await environmentAt('user/alice/')).toMatchObject({
    WHO: 'alice',
    DATA: '/data/alice//x',
    JSON: '{"a":{}}',
  });
  expect(await environmentAt('user/alice/lab/')).toMatchObject({ DATA: '/data/alice/lab/x' });
});

test('servers and services are told hub_connect_url as the address of the API', async () => {
  const port = await freePort();
  await using hub = await createServerHub({
    Hub: {
      allow_named_servers: true,
      environment_prefixes: ['HUB', 'JUPYTERHUB'],
      hub_connect_url: 'http://hub.internal:9999',
      services: [
        {
          name: 'env',
          url: `http://127.0.0.1:${port}`,
          command: fixtureApp('prints-environment'),
          access: 'gateway',
        },
      ],
    },
    Spawner: { cmd: fixtureApp('prints-environment') },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, serverPath('alice'));
  const browser = await hub.logIn('alice');
  const reported = {
    HUB_API_URL: 'http://hub.internal:9999/hub/api',
    JUPYTERHUB_API_URL: 'http://hub.internal:9999/hub/api',
  };
  const environmentOf = (text: string) => JSON.parse(text).environment as Record<string, string>;
  await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}`).catch(() => undefined);
    if (answer === undefined) return false;
    expect(environmentOf(await answer.text())).toMatchObject(reported);
    return true;
  }, 'the service answers');
  expect(environmentOf((await browser.open(`${hub.url}user/alice/`)).body)).toMatchObject({
    ...reported,
    HUB_ACTIVITY_URL: 'http://hub.internal:9999/hub/api/users/alice/activity',
    JUPYTERHUB_ACTIVITY_URL: 'http://hub.internal:9999/hub/api/users/alice/activity',
  });
});

test('the API waits for starts and stops as long as it is told to', async () => {
  await using hub = await createServerHub({
    Spawner: {
      cmd: onceReportedTo(...fixtureApp('plain-web-app'), '--stubborn'),
      slow_start_timeout: 0,
      slow_stop_timeout: 0,
      stop_timeout: 1,
    },
  });
  await createUsers(hub, 'alice');
  const path = serverPath('alice');
  const started = await startServer(hub, path);
  expect([started.status, (await getServer(hub, path)).pending]).toEqual([202, 'spawn']);
  await tellToGo(hub, 'alice');
  await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  expect((await stopServer(hub, path)).status).toBe(202);
  await untilServer(hub, path, ({ stopped }) => stopped, 'it has stopped');
});

describe('shutdown_on_logout', () => {
  test.each([true, false])(
    '%s: what becomes of the servers of a user who logs out',
    async (stops) => {
      await using hub = await createServerHub({
        Hub: { shutdown_on_logout: stops, allow_named_servers: true },
      });
      await createUsers(hub, 'alice', 'bob');
      const own = [serverPath('alice'), serverPath('alice', 'lab')];
      for (const path of [...own, serverPath('bob')]) await startUntilReady(hub, path);
      const browser = await hub.logIn('alice');
      const home = await browser.open(`${hub.url}hub/home`);
      expect((await submitFormTo(browser, home, /logout/)).status).toBe(200);
      if (stops) {
        for (const path of own) {
          await untilServer(hub, path, ({ stopped }) => stopped, `${path} has stopped`);
          expect((await getServer(hub, path)).failure).toBeNull();
        }
      } else {
        for (const path of own) expect((await getServer(hub, path)).ready).toBe(true);
      }
      expect((await getServer(hub, serverPath('bob'))).ready).toBe(true);
    },
  );

  test('does not stop anything when an administrator ends the login', async () => {
    await using hub = await createServerHub({ Hub: { shutdown_on_logout: true } });
    await createUsers(hub, 'alice');
    await startUntilReady(hub, serverPath('alice'));
    const browser = await hub.logIn('alice');
    await hub.api('/users/alice/sessions', adminToken, { method: 'DELETE' });
    await until(
      async () => (await browser.request(`${hub.url}hub/home`)).status === 302,
      'the login has ended',
    );
    expect((await getServer(hub, serverPath('alice'))).ready).toBe(true);
  });
});
