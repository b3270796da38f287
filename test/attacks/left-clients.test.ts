import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { createTestHub, until } from '../support/test-hub.ts';
import { attack, bytesOf } from './hub-harness.ts';

test('a client that leaves in the middle of a body is not an error of the hub', async () => {
  await using hub = await createTestHub();
  const port = Number(new URL(hub.url).port);
  const requests: IncomingMessage[] = [];
  hub.hub.publicServer.on('request', (req) => requests.push(req));
  const paths = ['/hub/login', '/hub/api/oauth2/token', '/hub/api/users/alice/tokens'];
  for (const [index, path] of paths.entries()) {
    const headers = [
      'Content-Type: application/x-www-form-urlencoded',
      'Authorization: token admin-service-token',
      'Content-Length: 100',
    ];
    const client = await attack({ port }, bytesOf(`POST ${path}`, headers, 'abc'));
    const isRead = () => (requests[index]?.listenerCount('readable') ?? 0) > 0;
    await until(async () => isRead(), 'the body is read');
    client.socket.destroy();
  }
  const logged = () => hub.logLines.filter(({ msg }) => msg === 'request');
  await until(async () => logged().length === paths.length, 'each request is logged');
  expect(logged().map(({ status }) => status)).toEqual([499, 499, 499]);
  expect(hub.logLines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
});
