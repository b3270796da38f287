import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../../test/support/free-port.ts';
import { startGuardedApp } from '../../test/support/guarded-app.ts';
import { until } from '../../test/support/test-hub.ts';

const givenPorts = '/proc/sys/net/ipv4/ip_local_port_range';

test.runIf(existsSync(givenPorts))(
  'an app gets no port that the system might give to another program meanwhile',
  async () => {
    const [first = 0, last = 0] = readFileSync(givenPorts, 'latin1').split(/\s+/).map(Number);
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const { environment } = await parts.echo('/user/alice/');
    const port = Number(environment['PORT']);
    expect(port >= first && port <= last).toBe(false);
  },
);

describe('another program at the port of the app', () => {
  /** A web server of someone else. It notes the headers that it gets, and listens wherever it is asked to. */
  async function startForeignProcess() {
    const seen: string[] = [];
    const server = createServer((asked, response) => {
      seen.push(asked.rawHeaders.join(' '));
      response.end('of a stranger');
    });
    server.on('upgrade', (asked, socket) => {
      seen.push(asked.rawHeaders.join(' '));
      socket.end('HTTP/1.1 418 of a stranger\r\n\r\n');
    });
    const takenPorts: number[] = [];
    /** Takes the port that an app was given, the first `times` times, before the app may try it. */
    const control = createServer((asked, response) => {
      if (takenPorts.length === times) {
        response.end();
        return;
      }
      takenPorts.push(Number(asked.url?.slice(1)));
      server.close();
      server.listen(takenPorts.at(-1), '127.0.0.1', () => response.end());
    }).listen(0, '127.0.0.1');
    await once(control, 'listening');
    let times = 1;
    return {
      seen,
      takenPorts,
      server,
      controlUrl: `http://127.0.0.1:${(control.address() as AddressInfo).port}/`,
      takes(count: number) {
        times = count;
      },
      async [Symbol.asyncDispose]() {
        for (const each of [server, control]) {
          each.closeAllConnections();
          each.close();
        }
      },
    };
  }

  /** Its port is taken before it listens; then it goes on as `otherwise` says. */
  const tells = (controlUrl: string, otherwise: string) => [
    process.execPath,
    '--input-type=module',
    '--eval',
    `import { createServer } from 'node:http';
     await (await fetch('${controlUrl}' + process.env.PORT)).text();
     const server = createServer((request, response) => response.end('of the app at ' + process.env.PORT));
     server.on('error', () => { ${otherwise} });
     server.listen(Number(process.env.PORT), '127.0.0.1');
     process.on('SIGUSR2', () => { server.close(); server.closeAllConnections(); setInterval(() => {}, 1e6); });`,
  ];
  const secrets = { authorization: 'token good', cookie: 'mine=secret' };

  test.for([
    ['ends', 'process.exit(98)'],
    ['waits for its port', 'setInterval(() => {}, 1e6)'],
  ] as const)(
    'is not taken for an app that %s: the app gets another port',
    async ([, otherwise]) => {
      await using foreignProcess = await startForeignProcess();
      const command = tells(foreignProcess.controlUrl, otherwise);
      await using parts = await startGuardedApp({ command });
      await parts.singleuser.ready;
      const answer = await fetch(parts.prefix, { headers: secrets });
      expect(await answer.text()).toMatch(/^of the app at \d+$/);
      expect(foreignProcess.takenPorts).toHaveLength(1);
      expect(foreignProcess.seen.join()).not.toMatch(/secret|good/);
    },
  );

  test('that has every port ends the server, which says so', async () => {
    await using foreignProcess = await startForeignProcess();
    foreignProcess.takes(100);
    const log = new PassThrough();
    const output = text(log);
    // One that ends by itself may be ended before: its exit code would be the one or the other.
    const command = tells(foreignProcess.controlUrl, 'setInterval(() => {}, 1e6)');
    await using parts = await startGuardedApp({ command }, {}, pino(log));
    expect(await parts.singleuser.exited).toBe(1);
    log.end();
    expect(foreignProcess.takenPorts).toHaveLength(3);
    expect(await output).toMatch(
      new RegExp(`pid ${process.pid} \\(.+\\) holds the port ${foreignProcess.takenPorts[2]}`),
    );
  });

  test('that has the port it must listen on ends the server, and gets nothing of visitors', async () => {
    await using foreignProcess = await startForeignProcess();
    foreignProcess.server.listen(0, '127.0.0.1');
    await once(foreignProcess.server, 'listening');
    const { port } = foreignProcess.server.address() as AddressInfo;
    const command = [process.execPath, '--eval', 'setInterval(() => {}, 1e6)'];
    await using parts = await startGuardedApp({ command, port });
    const answer = await fetch(parts.prefix, { headers: secrets });
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.not.stringContaining('of a stranger'),
    ]);
    expect(await parts.singleuser.exited).toBe(1);
    expect(foreignProcess.seen.join()).not.toMatch(/secret|good/);
  });

  test('is believed where the app is known to have another one listen', async () => {
    await using foreignProcess = await startForeignProcess();
    const command = tells(foreignProcess.controlUrl, 'setInterval(() => {}, 1e6)');
    await using parts = await startGuardedApp({ command, listensElsewhere: true });
    await parts.singleuser.ready;
    const answer = await fetch(parts.prefix, { headers: secrets });
    expect(await answer.text()).toBe('of a stranger');
  });

  test('gets nothing of visitors when the app stops listening later', async () => {
    await using foreignProcess = await startForeignProcess();
    foreignProcess.takes(0);
    const port = await freePort();
    await using parts = await startGuardedApp({
      command: tells(foreignProcess.controlUrl, ''),
      port,
    });
    await parts.singleuser.ready;
    const ask = async () => {
      const answer = await fetch(parts.prefix, { headers: secrets });
      return { status: answer.status, body: await answer.text() };
    };
    expect(await ask()).toEqual({ status: 200, body: `of the app at ${port}` });
    parts.singleuser.signal('SIGUSR2');
    await until(async () => {
      const listening = once(foreignProcess.server.listen(port, '127.0.0.1'), 'listening');
      return (await listening.catch(() => undefined)) !== undefined;
    }, 'the stranger has the port');
    expect(await ask()).toEqual({ status: 503, body: expect.stringContaining('does not answer') });
    const socket = new WebSocket(`ws://127.0.0.1:${parts.port}/user/alice/ws`, {
      headers: secrets,
    });
    socket.on('error', () => undefined);
    const [, refusal] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(refusal.statusCode).toBe(503);
    socket.terminate();
    expect(foreignProcess.seen).toEqual([]);
  });
});
