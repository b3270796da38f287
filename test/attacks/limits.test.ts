import { describe, expect, test } from 'vitest';
import { defaultArgon2Cost } from '../../src/identity/authentication/password-hash.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { untilState } from '../support/services.ts';
import { submitLogin, until } from '../support/test-hub.ts';
import {
  answerTo,
  attack,
  bytesOf,
  handshakeOf,
  isHealthy,
  startAttackedHub,
} from './hub-harness.ts';
import { eventually, type RawPeer, startRawUpstream, statusOf } from './proxy-harness.ts';

/** A refusal tells what is wrong in its status and body, and when to come back. */
function expectRefusal(answer: string, status: number): void {
  expect(statusOf(answer)).toBe(status);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  expect(body).toContain(`"status":${status}`);
  if (status === 429 || status === 503) expect(answer).toMatch(/\r\nretry-after: [1-9]\d*\r\n/i);
}

async function closeAll(peers: readonly RawPeer[]): Promise<void> {
  for (const { socket } of peers) socket.destroy();
  await Promise.all(peers.map(({ closed }) => closed));
}

describe('over a limit', () => {
  test('of connections from one address: 429, and room again when one closes', async () => {
    await using hub = await startAttackedHub({ Proxy: { max_connections_per_address: 5 } });
    const open = await Promise.all(Array.from({ length: 5 }, () => attack(hub)));
    expectRefusal(await answerTo(hub, bytesOf('GET /open/')), 429);
    await closeAll(open.slice(0, 1));
    await until(
      async () => statusOf(await answerTo(hub, bytesOf('GET /open/'))) === 200,
      'there is room again',
    );
    await closeAll(open);
  });

  test('of connections in all: 503, also for those of trusted proxies', async () => {
    await using hub = await startAttackedHub({
      Hub: { trusted_proxies: ['127.0.0.1'] },
      Proxy: { max_connections_per_address: 2, max_connections: 5 },
    });
    const open = await Promise.all(Array.from({ length: 5 }, () => attack(hub)));
    const before = hub.seen.length;
    expectRefusal(await answerTo(hub, bytesOf('GET /open/')), 503);
    expect(hub.seen.length).toBe(before);
    await closeAll(open);
  });

  test('of connections, a flood gets answers and the hub goes on', async () => {
    await using hub = await startAttackedHub({ Proxy: { max_connections_per_address: 20 } });
    const flood = await Promise.all(Array.from({ length: 400 }, () => attack(hub)));
    await Promise.all(flood.slice(20).map((peer) => peer.until('429')));
    await closeAll(flood);
    await until(() => isHealthy(hub.hub), 'the hub answers again');
  });

  test.for([
    ['header block: 431', ['X-Large: '.padEnd(17_000, 'x')], 431],
    ['cookies: 431', [`Cookie: ${'c=d; '.repeat(4_000)}`], 431],
  ] as const)('of the %s', async ([, headers, status]) => {
    await using hub = await startAttackedHub();
    for (const path of ['/open/', '/services/guarded/', '/hub/login']) {
      expectRefusal(await answerTo(hub, bytesOf(`GET ${path}`, headers)), status);
    }
    expect(hub.seen).toEqual([]);
  });

  test('of a forwarded body: 413, announced or not', async () => {
    await using hub = await startAttackedHub({ Proxy: { max_body_size: 1_000 } });
    const body = 'x'.repeat(2_000);
    expectRefusal(await answerTo(hub, bytesOf('POST /open/', ['Content-Length: 2000'], body)), 413);
    const chunked = `7d0\r\n${body}\r\n0\r\n\r\n`;
    expectRefusal(
      await answerTo(hub, bytesOf('POST /open/', ['Transfer-Encoding: chunked'], chunked)),
      413,
    );
    expect(hub.seen).toEqual([]);
  });

  // The token endpoint says it in the words of RFC 6749 §5.2.
  test.for([
    ['/hub/login', 413],
    ['/hub/api/users', 413],
    ['/hub/api/oauth2/token', 400],
  ] as const)(
    'row 50: of a body for the hub itself at %s: %i, however it is sent',
    async ([path, status]) => {
      await using hub = await startAttackedHub({ Proxy: { api_body_size: 1_000 } });
      const headers = [
        'Authorization: token admin-service-token',
        `Content-Type: application/${path.endsWith('users') ? 'json' : 'x-www-form-urlencoded'}`,
      ];
      const body = 'x'.repeat(70_000);
      const announced = bytesOf(`POST ${path}`, [...headers, 'Content-Length: 1000000000'], body);
      expect(statusOf(await answerTo(hub, announced))).toBe(status);
      const chunked = bytesOf(
        `POST ${path}`,
        [...headers, 'Transfer-Encoding: chunked'],
        `11170\r\n${body}\r\n0\r\n\r\n`,
      );
      expect(statusOf(await answerTo(hub, chunked))).toBe(status);
    },
  );

  test('of WebSockets of one user: 429, on guarded services and on others together', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(
          peer.text().includes('hub-readiness-probe')
            ? 'HTTP/1.1 204 No Content\r\n\r\n'
            : 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
                'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
        ),
      );
    });
    await using hub = await startAttackedHub({
      Hub: {
        services: [
          { name: 'ws', url: upstream.url, api_token: 'ws-service-token' },
          { name: 'gws', url: upstream.url, access: 'gateway', api_token: 'gws-service-token' },
        ],
      },
      Proxy: { max_websockets_per_user: 2 },
    });
    await untilState(hub.hub, 'ws', 'ready');
    await untilState(hub.hub, 'gws', 'ready');
    const browser = await hub.hub.logIn('alice');
    const cookie = `Cookie: ${browser.cookieHeader(`${hub.url}services/ws/`)}`;
    const open = [
      await attack(hub, handshakeOf('/services/ws/1', [cookie])),
      await attack(hub, handshakeOf('/services/ws/2', [cookie])),
    ];
    await Promise.all(open.map((peer) => peer.until(' 101 ')));
    expectRefusal(await answerTo(hub, handshakeOf('/services/ws/3', [cookie])), 429);
    const answer = await hub.hub.api('/users/alice/tokens', 'admin-service-token', {
      method: 'POST',
      body: '{}',
    });
    const { token } = (await answer.json()) as { token: string };
    const authorization = `Authorization: token ${token}`;
    expectRefusal(await answerTo(hub, handshakeOf('/services/gws/', [authorization])), 429);
    const outsider = await attack(hub, handshakeOf('/services/ws/4'));
    await outsider.until(' 101 ');
    await closeAll([...open, outsider]);
  });

  test('of logins at once: 429, and none is lost', async () => {
    await using hub = await startAttackedHub(
      {
        Hub: { authenticator_class: 'password' },
        Authenticator: { concurrent_logins: 1, max_pending_logins: 9, lockout_attempts: 1_000 },
      },
      { passwordCost: defaultArgon2Cost },
    );
    const answers = await Promise.all(
      Array.from({ length: 30 }, async (_, index) =>
        submitLogin(new FakeBrowser(), hub.url, `nobody-${index}`, 'a wrong password'),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 429 && status !== 401)).toEqual([]);
    expect(statuses).toContain(429);
    for (const { status, headers } of answers) {
      if (status === 429) expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
  });
});

// They wait for limits of seconds most of the time.
describe.concurrent('row 49: too slow', () => {
  test('with its headers: 408', async () => {
    await using hub = await startAttackedHub({ Proxy: { headers_timeout: 1 } });
    const begun = ['', 'GET /open/ HTTP/1.1\r\nHost: hub', 'GET /open/ HTTP/1.1\r\n'];
    const answers = await Promise.all(begun.map((each) => answerTo(hub, each)));
    for (const answer of answers) expectRefusal(answer, 408);
  });

  test('with a whole request: 408', async () => {
    await using hub = await startAttackedHub({
      Proxy: { request_timeout: 2, headers_timeout: 1 },
    });
    const begun = bytesOf('POST /open/', ['Content-Length: 10'], 'x');
    expectRefusal(await answerTo(hub, begun), 408);
  });

  test('with a body that trickles in, to an application and to the hub: 408', async () => {
    await using hub = await startAttackedHub({ Proxy: { client_body_timeout: 2 } });
    const statusAt = async (path: string) => {
      const client = await attack(
        hub,
        bytesOf(`POST ${path}`, [
          'Content-Length: 10000',
          'Content-Type: application/x-www-form-urlencoded',
        ]),
      );
      const trickle = setInterval(() => client.write('x'), 100);
      await client.closed;
      clearInterval(trickle);
      return [path, statusOf(client.text())];
    };
    const paths = ['/open/', '/hub/login', '/hub/api/oauth2/token'];
    expect(await Promise.all(paths.map(statusAt))).toEqual(paths.map((path) => [path, 408]));
  });

  test('with taking its answer is cut, and its memory and connections are free again', async () => {
    const piece = Buffer.alloc(1 << 20);
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write(`HTTP/1.1 200 OK\r\nContent-Length: ${2 ** 30}\r\n\r\n`);
        const fill = () => {
          while (!peer.socket.destroyed && peer.socket.write(piece));
        };
        peer.socket.on('drain', fill);
        fill();
      });
    });
    await using hub = await startAttackedHub({
      Proxy: { client_read_timeout: 2, extra_routes: { '/big/': upstream.url } },
    });
    const client = await attack(hub, bytesOf('GET /big/'));
    client.socket.pause();
    await eventually(() => upstream.received().includes('/big/'));
    await upstream.peers[0]?.closed;
    client.socket.destroy();
    expect(await isHealthy(hub.hub)).toBe(true);
  });

  test('of an application to connect, answer or go on: 504, or the connection is cut', async () => {
    await using silent = await startRawUpstream(() => {});
    await using stalls = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'));
    });
    await using hub = await startAttackedHub({
      Proxy: {
        upstream_timeout: 3,
        body_timeout: 3,
        extra_routes: {
          '/silent/': silent.url,
          '/patient/': { target: silent.url, upstream_timeout: 600 },
          '/stalls/': stalls.url,
        },
      },
    });
    const patient = await attack(hub, bytesOf('GET /patient/'));
    const [plain, webSocket, cut] = await Promise.all([
      answerTo(hub, bytesOf('GET /silent/')),
      answerTo(hub, handshakeOf('/silent/')),
      answerTo(hub, bytesOf('GET /stalls/')),
    ]);
    expectRefusal(plain, 504);
    expectRefusal(webSocket, 504);
    expect(cut).toMatch(/\r\n\r\nabc$/);
    expect(patient.socket.destroyed).toBe(false);
    await closeAll([patient]);
  });

  test('with its next request: the connection is closed', async () => {
    await using hub = await startAttackedHub({ Proxy: { idle_timeout: 1 } });
    const client = await attack(hub, bytesOf('GET /open/', ['Connection: keep-alive']));
    await client.closed;
    expect(statusOf(client.text())).toBe(200);
  });
});
