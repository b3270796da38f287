import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { rawClient, rawPeer } from '../attacks/proxy-harness.ts';
import { createHubFolder, type HubFolder, type HubProcess } from '../support/hub-process.ts';
import { until } from '../support/test-hub.ts';

/** An application with everything that can be under way when the hub stops. */
async function startApp() {
  const held: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    if (incoming.url?.endsWith('/events')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    } else if (incoming.url?.endsWith('/held')) {
      held.push(response);
    } else {
      response.end('quick');
    }
  }).listen(0, '127.0.0.1');
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.send('hello'));
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
      server.closeAllConnections();
    },
  };
}

let app: Awaited<ReturnType<typeof startApp>>;
let folder: HubFolder;

beforeAll(async () => {
  app = await startApp();
  folder = await createHubFolder({
    Proxy: { extra_routes: { '/app/': app.url } },
  });
});
afterAll(async () => {
  await folder[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

async function stop(hub: HubProcess): Promise<void> {
  hub.signal('SIGTERM');
  await until(() => hub.logged(/hub stopping/).length > 0, 'hub stopping');
}

describe('a hub that is told to stop', () => {
  test('closes WebSockets with 1001, ends event streams and idle connections, and is gone at once', async () => {
    const hub = await folder.start();
    const port = Number(new URL(folder.url).port);
    const socket = new WebSocket(`${folder.url.replace('http', 'ws')}app/socket`);
    await once(socket, 'message');
    const socketClosed = once(socket, 'close');
    const outgoing = request(`${folder.url}app/events`).end();
    const [stream] = (await once(outgoing, 'response')) as [IncomingMessage];
    const idle = await rawClient(port, 'GET /app/ HTTP/1.1\r\nHost: hub.test\r\n\r\n');
    await idle.until('quick');
    // As browsers open them ahead of need.
    const unused = rawPeer(connect(port, '127.0.0.1'));

    await stop(hub);
    expect((await socketClosed)[0]).toBe(1001);
    expect(await text(stream)).toBe('data: 1\n\n');
    await Promise.all([idle.closed, unused.closed]);
    expect(await hub.exited).toBe(0);
  });

  test('answers what is in flight and tells its client that the connection ends', async () => {
    const hub = await folder.start();
    const port = Number(new URL(folder.url).port);
    const client = await rawClient(port, 'GET /app/held HTTP/1.1\r\nHost: hub.test\r\n\r\n');
    await until(() => app.held.length === 1, 'the request is in flight');
    await stop(hub);
    await until(
      () =>
        fetch(`${folder.url}hub/health`).then(
          () => false,
          () => true,
        ),
      'no new connection is taken',
    );
    app.held[0]?.end('held no longer');
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(client.text()).toMatch(/\r\nconnection: close\r\n/i);
    expect(client.text()).toContain('held no longer');
    expect(await hub.exited).toBe(0);
  });

  test('answers 503 at the deadline to requests that have no answer yet', async () => {
    await folder.configure({
      Hub: { shutdown_timeout: 1 },
      Proxy: { extra_routes: { '/app/': app.url } },
    });
    const hub = await folder.start();
    app.held.length = 0;
    const port = Number(new URL(folder.url).port);
    const client = await rawClient(port, 'GET /app/held HTTP/1.1\r\nHost: hub.test\r\n\r\n');
    await until(() => app.held.length === 1, 'the request is in flight');
    hub.signal('SIGTERM');
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(client.text()).toMatch(/\r\nretry-after: \d+\r\n/i);
    expect(await hub.exited).toBe(0);
  });
});
