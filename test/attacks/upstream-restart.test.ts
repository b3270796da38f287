import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { head, rawClient, rawRequest, startProxy, statusOf } from './proxy-harness.ts';

async function start(port: number): Promise<Server> {
  const server = createServer((req, res) => {
    // An upload that is cut off by the restart is not answered.
    text(req).then(
      (body) => res.end(`${req.url} ${body}`),
      () => {},
    );
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

describe('an application that restarts under load', () => {
  test.for(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])('loses no %s request', async (method) => {
    const port = await freePort();
    let server = await start(port);
    await using proxy = await startProxy();
    proxy.addService('a', `http://127.0.0.1:${port}`);
    const statuses: number[] = [];
    const answered = Array.from({ length: 8 }, () => 0);
    let isOver = false;
    async function client(name: number): Promise<void> {
      for (let index = 0; !isOver; index += 1) {
        const path = `/services/a/${name}-${index}`;
        const answer = await rawRequest(
          proxy.port,
          method === 'PUT'
            ? `${head(`PUT ${path}`, 'Content-Length: 4', 'Connection: close')}body`
            : head(`${method} ${path}`, 'Connection: close'),
        );
        statuses.push(statusOf(answer));
        answered[name] = index + 1;
        if (method === 'GET') expect(answer).toContain(path);
        if (method === 'PUT') expect(answer).toContain(`${path} body`);
      }
    }
    const clients = answered.map((_, name) => client(name));
    for (let restart = 0; restart < 8; restart += 1) {
      // A request is repeated once: none may live through two restarts.
      const before = [...answered];
      while (answered.some((count, name) => count < (before[name] ?? 0) + 2))
        await new Promise((resolve) => setImmediate(resolve));
      await stop(server);
      // A while without anybody there, counted in refused connections and not in time.
      for (let refused = 0; refused < 30; refused += 1) {
        await expect(rawClient(port)).rejects.toThrow('ECONNREFUSED');
      }
      server = await start(port);
    }
    isOver = true;
    await Promise.all(clients);
    await stop(server);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });

  test.for([4, 200_000])(
    'gets a POST that came meanwhile, its %i bytes once and whole',
    async (length) => {
      const port = await freePort();
      let server = await start(port);
      await using proxy = await startProxy();
      proxy.addService('a', `http://127.0.0.1:${port}`);
      await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
      await stop(server);
      const body = 'x'.repeat(length);
      const answer = rawRequest(
        proxy.port,
        head('POST /services/a/', `Content-Length: ${length}`, 'Connection: close') + body,
      );
      for (let refused = 0; refused < 30; refused += 1) {
        await expect(rawClient(port)).rejects.toThrow('ECONNREFUSED');
      }
      server = await start(port);
      expect((await answer).endsWith(`/services/a/ ${body}`)).toBe(true);
      await stop(server);
    },
  );

  test('that never comes back is 503 after a moment, and at once when it was never there', async () => {
    const port = await freePort();
    const server = await start(port);
    await using proxy = await startProxy({ reconnect_timeout: 0.2 });
    proxy.addService('a', `http://127.0.0.1:${port}`);
    proxy.addService('missing', 'http://127.0.0.1:1');
    const request = (name: string) =>
      rawRequest(proxy.port, head(`GET /services/${name}/`, 'Connection: close'));
    expect(statusOf(await request('a'))).toBe(200);
    await stop(server);
    expect(statusOf(await request('a'))).toBe(503);
    expect(statusOf(await request('missing'))).toBe(503);
    expect(proxy.liveConnections.size).toBe(0);
  });
});
