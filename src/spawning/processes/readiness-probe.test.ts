import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import { systemClock } from './clock.ts';
import { probeReadiness, waitUntilReady } from './readiness-probe.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener, at: { path?: string } = {}): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  server.listen(at.path === undefined ? { port: 0, host: '127.0.0.1' } : at);
  await once(server, 'listening');
  return at.path === undefined
    ? `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    : `http+unix://${encodeURIComponent(at.path)}`;
}

function answer(status: number): RequestListener {
  return (_request, response) => response.writeHead(status, { location: '/elsewhere' }).end('body');
}

describe('a readiness probe', () => {
  test.each([200, 302, 404, 499])(
    'status %i is ready, redirects are not followed',
    async (status) => {
      const url = await serve(answer(status));
      expect(await probeReadiness({ url, path: '/', timeoutMs: 60_000 })).toEqual({
        ready: true,
        status,
        answeredInMs: expect.any(Number),
      });
    },
  );

  test('status 503 is not ready', async () => {
    const url = await serve(answer(503));
    expect(await probeReadiness({ url, path: '/', timeoutMs: 60_000 })).toEqual({
      ready: false,
      problem: 'status',
      reason: `${url} answers with status 503`,
    });
  });

  test('asks for the path it is given', async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.url);
      response.end();
    });
    await probeReadiness({ url: `${url}/ignored`, path: '/services/a/health', timeoutMs: 60_000 });
    expect(asked).toEqual(['/services/a/health']);
  });

  test('a port where no process listens is told apart from one that does not answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const refused = await probeReadiness({ url, path: '/', timeoutMs: 60_000 });
    expect(refused).toMatchObject({ ready: false, problem: 'refused' });

    const silent = await serve(() => undefined);
    const timedOut = await probeReadiness({ url: silent, path: '/', timeoutMs: 50 });
    expect(timedOut).toMatchObject({ ready: false, problem: 'timeout' });
  });

  test('reaches a Unix socket', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'probe-'));
    const url = await serve(answer(200), { path: join(directory, 'app.sock') });
    expect(await probeReadiness({ url, path: '/', timeoutMs: 60_000 })).toMatchObject({
      ready: true,
      status: 200,
    });
    await rm(directory, { recursive: true });
  });

  test('waits until the server has come up', async () => {
    let asked = 0;
    const url = await serve((_request, response) => {
      asked += 1;
      response.writeHead(asked < 3 ? 503 : 200).end();
    });
    expect(await waitUntilReady({ url, path: '/', timeoutMs: 30_000 })).toMatchObject({
      ready: true,
      status: 200,
    });
    expect(asked).toBe(3);
  });

  test('gives up when the time is over, with the last answer', async () => {
    const url = await serve(answer(500));
    let now = 0;
    const clock = {
      now: () => Date.now(),
      monotonicMs: () => now,
      sleep: async (ms: number) => {
        now += ms;
      },
    };
    const result = await waitUntilReady({ url, path: '/', timeoutMs: 10_000, clock });
    expect(result).toMatchObject({ ready: false, problem: 'status' });
    expect(now).toBeLessThanOrEqual(10_000);
  });

  test('sees a server a quarter of its time late at most', async () => {
    const seen: number[] = [];
    for (const readyAt of [10, 90, 400, 3_000]) {
      let now = 0;
      const clock = {
        ...systemClock,
        monotonicMs: () => now,
        sleep: async (ms: number) => {
          now += ms;
        },
      };
      const refused = { ready: false, problem: 'refused', reason: 'a reason' } as const;
      const probe = async () =>
        now < readyAt ? refused : ({ ready: true, status: 200, answeredInMs: 1 } as const);
      const url = 'http://127.0.0.1:1';
      await waitUntilReady({ url, path: '/', timeoutMs: 10_000, clock, probe });
      seen.push(Math.floor(now));
    }
    expect(seen).toEqual([15, 93, 447, 3_330]);
  });

  test('tells what it saw before its last moment, which was too short for an answer', async () => {
    let now = 0;
    const clock = {
      now: () => Date.now(),
      monotonicMs: () => now,
      sleep: async () => {
        now = 9_995;
      },
    };
    const probes: number[] = [];
    const result = await waitUntilReady({
      url: 'http://127.0.0.1:1',
      path: '/',
      timeoutMs: 10_000,
      clock,
      probe: async ({ timeoutMs }) => {
        probes.push(timeoutMs);
        const isFirst = probes.length === 1;
        return { ready: false, problem: isFirst ? 'foreign' : 'timeout', reason: 'a reason' };
      },
    });
    expect(probes).toEqual([10_000, 5]);
    expect(result).toMatchObject({ problem: 'foreign' });
  });

  test('ends at once when it is aborted', async () => {
    const silent = await serve(() => undefined);
    const controller = new AbortController();
    const waiting = waitUntilReady({
      url: silent,
      path: '/',
      timeoutMs: 60_000,
      signal: controller.signal,
    });
    controller.abort();
    expect(await waiting).toMatchObject({ ready: false });
  });
});
