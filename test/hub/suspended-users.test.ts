import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  serverPath,
  startServer,
  startUntilReady,
  submitFormTo,
  tokenOf,
} from '../support/server-hub.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';

const settings = {
  Authenticator: { admin_users: ['root'] },
  Spawner: { access: 'gateway', cmd: fixtureApp('gateway-app') },
};

const suspend = (hub: TestHub, name: string, token = adminToken) =>
  hub.api(`/users/${name}/suspension`, token, { method: 'PUT' });
const unsuspend = (hub: TestHub, name: string) =>
  hub.api(`/users/${name}/suspension`, adminToken, { method: 'DELETE' });

describe('a suspended user', () => {
  test('is shut out at once with everything, and gets it back when the suspension ends', async () => {
    await using hub = await createServerHub(settings);
    const alice = await hub.logIn('alice');
    const token = await tokenOf(hub, 'alice');
    await startUntilReady(hub, serverPath('alice'));
    const page = `${hub.url}user/alice/`;
    expect((await alice.open(page)).status).toBe(200);
    const socket = new WebSocket(page.replace('http', 'ws'), {
      headers: { cookie: alice.cookieHeader(page), origin: new URL(page).origin },
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => socket.once('open', resolve));

    expect((await suspend(hub, 'alice')).status).toBe(204);
    await closed;
    expect((await hub.api('/user', token)).status).toBe(403);
    expect((await alice.request(`${hub.url}hub/home`)).headers.location).toContain('/hub/login');
    expect((await alice.request(page)).status).not.toBe(200);
    expect(await getServer(hub, serverPath('alice'))).toMatchObject({
      ready: false,
      stopped: true,
    });
    expect((await startServer(hub, serverPath('alice'))).status).toBe(403);
    const refused = await submitLogin(new FakeBrowser(), hub.url, 'alice', 'test');
    expect(refused).toMatchObject({
      status: 403,
      body: expect.stringContaining('This account is suspended.'),
    });
    const model = await hub.api('/users/alice', adminToken);
    expect(await model.json()).toMatchObject({ name: 'alice', suspended: true });

    expect((await unsuspend(hub, 'alice')).status).toBe(204);
    expect((await hub.api('/user', token)).status).toBe(200);
    expect((await alice.request(`${hub.url}hub/home`)).status).toBe(200);
    await startUntilReady(hub, serverPath('alice'));
    expect((await alice.open(page)).status).toBe(200);
  });

  test('reaches nothing that others share, and counts as no administrator', async () => {
    await using hub = await createServerHub({
      ...settings,
      Hub: { load_roles: [{ name: 'user', scopes: ['self', 'shares!user'] }] },
    });
    await createUsers(hub, 'alice');
    const bob = await hub.logIn('bob');
    await startUntilReady(hub, serverPath('alice'));
    const share = { method: 'POST', body: JSON.stringify({ user: 'bob' }) };
    expect((await hub.api('/shares/alice/', adminToken, share)).status).toBe(200);
    expect((await bob.open(`${hub.url}user/alice/`)).status).toBe(200);
    await suspend(hub, 'bob');
    expect((await bob.request(`${hub.url}user/alice/`)).status).not.toBe(200);
    await unsuspend(hub, 'bob');
    expect((await bob.open(`${hub.url}user/alice/`)).status).toBe(200);
  });

  test('is neither oneself nor the last administrator, nor one who may do more', async () => {
    await using hub = await createServerHub({
      ...settings,
      Hub: {
        load_roles: [
          { name: 'desk', scopes: ['admin:users', 'tokens!user', 'self'], users: ['dora'] },
        ],
      },
    });
    const [root, dora] = [await hub.logIn('root'), await hub.logIn('dora')];
    await createUsers(hub, 'alice');
    const rootToken = await tokenOf(hub, 'root');
    const own = await suspend(hub, 'root', rootToken);
    expect([own.status, await own.json()]).toMatchObject([
      400,
      { message: 'You cannot suspend your own account.' },
    ]);
    expect((await suspend(hub, 'root', await tokenOf(hub, 'dora'))).status).toBe(403);
    expect((await root.request(`${hub.url}hub/home`)).status).toBe(200);
    expect((await suspend(hub, 'alice', await tokenOf(hub, 'dora'))).status).toBe(204);
    expect((await dora.request(`${hub.url}hub/home`)).status).toBe(200);
    // By the page, which says so.
    const page = await root.open(`${hub.url}hub/admin/users/alice`);
    expect(page.body).toContain('Suspended');
    const ended = await submitFormTo(root, page, /unsuspend/);
    expect(ended.status).toBe(303);
    await until(async () => {
      const { suspended } = (await (await hub.api('/users/alice', adminToken)).json()) as {
        suspended: boolean;
      };
      return !suspended;
    }, 'alice may come again');
  });
});
