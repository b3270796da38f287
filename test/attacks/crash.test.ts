import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proxySection } from '../../src/platform/config/sections-schema.ts';
import { HubError } from '../../src/platform/errors.ts';
import { answerErrorOnSocket } from '../../src/platform/http/answer.ts';
import { createHubServer } from '../../src/platform/http/server/http-server.ts';
import {
  type AttackedHub,
  answerTo,
  attack,
  bytesOf,
  handshakeOf,
  isHealthy,
  startAttackedHub,
} from './hub-harness.ts';
import { statusOf } from './proxy-harness.ts';

// An error that nobody hears ends the process: here the test runner reports it and fails.
let hub: AttackedHub;

beforeAll(async () => {
  hub = await startAttackedHub();
});
afterAll(async () => hub[Symbol.asyncDispose]());

const paths = ['/services/guarded/x', '/services/own/x', '/open/x', '/hub/x', '/nobody/x'];

describe('row 48: clients that reset their connection', () => {
  test.for(paths)('while a WebSocket to %s is decided end no hub', async (path) => {
    const headers = [
      'Origin: http://hub.test',
      'Authorization: token guarded-service-token',
      'Cookie: hub-session-id=nobody',
    ];
    for (let round = 0; round < 20; round++) {
      const clients = await Promise.all(
        Array.from({ length: 10 }, () => attack(hub, handshakeOf(path, headers))),
      );
      for (const { socket } of clients) socket.resetAndDestroy();
      await Promise.all(clients.map(({ closed }) => closed));
    }
    expect(await isHealthy(hub.hub)).toBe(true);
  });

  test('while the decision takes its time end no hub', async () => {
    const { promise: decided, resolve } = Promise.withResolvers<void>();
    const slow = createHubServer({
      config: proxySection.parse({}),
      log: pino({ level: 'silent' }),
      request: (_req, res) => res.end(),
      upgrade(_req, socket) {
        socket.once('close', () => {
          answerErrorOnSocket(socket, new HubError('forbidden', 'Too late.'));
          resolve();
        });
      },
    });
    slow.server.listen(0, '127.0.0.1');
    await once(slow.server, 'listening');
    const { port } = slow.server.address() as AddressInfo;
    const upgraded = once(slow.server, 'upgrade');
    const client = await attack({ port }, handshakeOf('/'));
    const [, socket] = await upgraded;
    socket.resume();
    client.socket.resetAndDestroy();
    await decided;
    await slow.close(0);
  });

  test.for(paths)('in the middle of a request to %s end no hub', async (path) => {
    const cuts = [
      bytesOf(`GET ${path}`, ['Connection: keep-alive']),
      bytesOf(`POST ${path}`, ['Content-Length: 100'], 'only this'),
      bytesOf(`POST ${path}`, ['Transfer-Encoding: chunked'], '5\r\nhello\r\n5\r\nhe'),
      bytesOf(`GET ${path}`).slice(0, -5),
      bytesOf(`CONNECT ${path}`),
      'GET / HTTP/1.1\r\n\0\0\0',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    ];
    for (const text of cuts) {
      for (let round = 0; round < 10; round++) {
        const client = await attack(hub, text);
        client.socket.resetAndDestroy();
      }
    }
    expect(await isHealthy(hub.hub)).toBe(true);
  });
});

describe('what is no HTTP', () => {
  test.for([
    ['a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400],
    ['noise', 'EHLO mail.example\r\n\r\n', 400],
    ['another protocol version', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    [
      'chunk extensions without end',
      bytesOf('POST /open/', ['Transfer-Encoding: chunked'], `1;${'x'.repeat(20_000)}\r\nx\r\n`),
      413,
    ],
  ] as const)('such as %s is answered with a body, then closed', async ([, text, status]) => {
    const answer = await answerTo(hub, text);
    expect(statusOf(answer)).toBe(status);
    expect(answer).toMatch(/\r\nConnection: close\r\n/i);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject({ status });
  });

  test('and CONNECT are refused with 405 and a body', async () => {
    const answer = await answerTo(hub, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil\r\n\r\n');
    expect(statusOf(answer)).toBe(405);
    expect(answer).toContain('method_not_allowed');
  });

  test('after a whole request does not change the answer to that', async () => {
    const answer = await answerTo(
      hub,
      `${bytesOf('GET /open/first', ['Connection: keep-alive'])}\0\0 HTTP\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });
});
