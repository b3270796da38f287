import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createTestHub, until } from '../support/test-hub.ts';
import { attack, bytesOf } from './hub-harness.ts';
import { startUpstream } from './proxy-harness.ts';

const admin = 'admin-service-token';
const maxBytes = 1024 * 1024;

test('what one reader leaves unread is bounded over all connections, and no other reader pays for it', async () => {
  await using upstream = await startUpstream((_req, res) => {
    res.end('x'.repeat(100_000));
  });
  await using hub = await createTestHub({
    Hub: {
      allow_named_servers: true,
      services: [{ name: 'app', url: upstream.url, access: 'public' }],
    },
    Spawner: { cmd: ['true'] },
    Proxy: { max_unread_size: maxBytes },
  });
  await until(async () => (await fetch(`${hub.url}services/app/`)).status === 200, 'it is open');
  const send = (path: string, body: object = {}, method = 'POST') =>
    hub.api(path, admin, { method, body: JSON.stringify(body) });
  const tokens: string[] = [];
  for (const name of ['alice', 'bob']) {
    await send(`/users/${name}`);
    const user_options = { large: 'x'.repeat(60_000) };
    expect((await send(`/users/${name}/servers/lab`, { user_options }, 'PUT')).status).toBe(201);
    const made = await (await send(`/users/${name}/tokens`)).json();
    tokens.push((made as { token: string }).token);
  }

  const port = Number(new URL(hub.url).port);
  /** Connections whose clients read nothing, as the hub sees them. */
  async function stall(count: number, path: string, token?: string): Promise<Socket[]> {
    const sockets: Socket[] = [];
    const onConnection = (socket: Socket) => {
      // As when the other side is full: what is written stays where it is.
      Object.assign(socket, { _write() {}, _writev() {} });
      sockets.push(socket);
    };
    hub.hub.publicServer.on('connection', onConnection);
    const headers = ['Connection: keep-alive'];
    if (token !== undefined) headers.push(`Authorization: token ${token}`);
    for (let index = 0; index < count; index += 1) {
      await attack({ port }, bytesOf(`GET ${path}`, headers));
    }
    await until(
      () =>
        sockets.length === count &&
        sockets.every((socket) => socket.destroyed || socket.writableLength > 60_000),
      'each has its answer',
    );
    hub.hub.publicServer.off('connection', onConnection);
    return sockets;
  }
  const unread = (sockets: readonly Socket[]) =>
    sockets
      .filter(({ destroyed }) => !destroyed)
      .reduce((sum, { writableLength }) => sum + writableLength, 0);

  const [ofAlice = '', ofBob = ''] = tokens;
  const bobs = await stall(3, '/hub/api/users/bob?include_stopped_servers', ofBob);
  for (const [count, path, token] of [
    [20, '/services/app/', undefined],
    [40, '/hub/api/users/alice?include_stopped_servers', ofAlice],
  ] as const) {
    const sockets = await stall(count, path, token);
    await until(() => unread(sockets) <= maxBytes, `${path} is bounded`);
    // No more are cut than have to be.
    expect(unread(sockets)).toBeGreaterThan(maxBytes / 2);
  }
  expect(bobs.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
});
