import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createCookieSharing } from './serve-messages.ts';

test('each request on a connection has the Cookie header that it was sent with', async () => {
  const shareCookie = createCookieSharing();
  const seen: unknown[] = [];
  const connections = new Set<Socket>();
  const server = createServer((req, res) => {
    shareCookie(req);
    connections.add(req.socket);
    seen.push(req.headers.cookie);
    res.end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const long = 'a'.repeat(3_000);
  const sent = ['a=1', 'a=1', 'a=2', undefined, 'a=2', 'a=1', long, `${long}b`, 'a=1'];
  for (const cookie of sent) {
    const headers = cookie === undefined ? {} : { cookie };
    const [answer] = (await once(get({ port, agent, headers }), 'response')) as [IncomingMessage];
    await once(answer.resume(), 'end');
  }
  agent.destroy();
  server.close();
  expect(connections.size).toBe(1);
  expect(seen).toEqual(sent);
});
