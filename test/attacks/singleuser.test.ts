import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { startFakeHub } from '../support/fake-hub.ts';
import { freePort } from '../support/free-port.ts';
import { appCommand, startGuardedApp } from '../support/guarded-app.ts';
import { until } from '../support/test-hub.ts';
import { rawClient, statusOf } from './proxy-harness.ts';

const head = (path: string, ...lines: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');

describe('a stranger who reaches the port of hub-singleuser', () => {
  test('and asks for much at once has one request checked at a time', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    const lookups = parts.hub.lookupsBegun;
    const guesses = Array.from({ length: 50 }, (_, index) =>
      head('/user/alice/', `Authorization: token guess${index}`),
    );
    const client = await rawClient(parts.port, guesses.join(''));
    await until(async () => parts.hub.lookupsBegun > lookups, 'the hub is asked');
    // Another client is served meanwhile, and has its turn behind what the first one could have asked.
    const other = await rawClient(parts.port, head('/user/alice/', 'Authorization: token other'));
    await until(async () => parts.hub.lookupsBegun > lookups + 1, 'the hub is asked');
    expect(parts.hub.lookupsBegun).toBe(lookups + 2);
    gate.resolve();
    await until(async () => client.text().split('HTTP/1.1 401').length === 51, 'all are answered');
    client.socket.destroy();
    other.socket.destroy();
  });

  test('and asks for more than that is cut off', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    const asks = head('/user/alice/', 'Authorization: token guess').repeat(100);
    const client = await rawClient(parts.port, asks);
    await client.closed;
    gate.resolve();
  });

  test('is told what is wrong with a head, and has 30 seconds to send it', async () => {
    await using parts = await startGuardedApp();
    expect(parts.singleuser.server).toMatchObject({ headersTimeout: 30_000 });
    const large = await rawClient(parts.port, head('/user/alice/', `X: ${'x'.repeat(100_000)}`));
    await large.closed;
    expect(statusOf(large.text())).toBe(431);
    expect(large.text()).toContain('"status":431');
    const broken = await rawClient(parts.port, 'GET / HTTP/1.1\r\nHost x\r\n\r\n');
    await broken.closed;
    expect(broken.text()).toContain('"status":400');
  });
});

describe('connections to hub-singleuser', () => {
  const opened: (AsyncDisposable | Disposable)[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) {
      if (Symbol.asyncDispose in each) await each[Symbol.asyncDispose]();
      else each[Symbol.dispose]();
    }
  });

  /** Runs it with few files that it may open. */
  async function startWith(openFiles: number): Promise<{ readonly port: number }> {
    const hub = await startFakeHub();
    opened.push(hub);
    hub.users.set('good', { name: 'alice', scopes: ['access:servers!server=alice/'] });
    const port = await freePort();
    const main = join(import.meta.dirname, '../../src/singleuser-main.ts');
    const program: ChildProcess = spawn(
      'sh',
      [
        '-c',
        `ulimit -n ${openFiles}; exec "$@"`,
        'sh',
        process.execPath,
        main,
        '--',
        ...appCommand,
      ],
      {
        stdio: 'ignore',
        env: {
          PATH: process.env['PATH'],
          HUB_API_TOKEN: 'the-token-of-the-server',
          HUB_API_URL: hub.apiUrl,
          HUB_CLIENT_ID: 'hub-user-alice',
          HUB_SERVICE_PREFIX: '/user/alice/',
          HUB_SERVICE_URL: `http://127.0.0.1:${port}/`,
          HUB_OAUTH_SCOPES: '["access:servers!server=alice/"]',
        },
      },
    );
    opened.push({
      async [Symbol.asyncDispose]() {
        const exit = once(program, 'exit');
        program.kill();
        await exit;
      },
    });
    return { port };
  }

  test('leave enough open files for those who use the app', async () => {
    const { port } = await startWith(120);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    opened.push({ [Symbol.dispose]: () => agent.destroy() });
    async function visit(token: string): Promise<number | undefined> {
      const asked = request(`http://127.0.0.1:${port}/user/alice/`, {
        agent,
        headers: { authorization: `token ${token}`, connection: 'keep-alive' },
      }).end();
      const [answer] = await once(asked, 'response');
      await text(answer);
      return answer.statusCode;
    }
    // Nothing is open to the app yet.
    await until(async () => (await visit('').catch(() => 0)) === 401, 'the app answers');
    const flood: Socket[] = [];
    opened.push({
      [Symbol.dispose]() {
        for (const socket of flood) socket.destroy();
      },
    });
    for (let each = 0; each < 200; each += 1) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      flood.push(socket);
      await once(socket, 'connect');
    }
    expect(await visit('good')).toBe(200);
  });
});
