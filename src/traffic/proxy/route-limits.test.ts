import { once } from 'node:events';
import { expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import {
  eventually,
  head,
  rawClient,
  rawRequest,
  startProxy,
  startUpstream,
  statusOf,
} from '../../../test/attacks/proxy-harness.ts';
import { type RouteLimits, routeLimits } from '../../platform/config/route-limits-schema.ts';
import { createRouteLimiter } from './route-limiter.ts';

const owner = { kind: 'extra' } as const;

async function startLimited(limits: object) {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(
    await startUpstream(
      (req, res) => {
        if (req.url === '/part') res.write('some');
        if (req.url?.endsWith('/large') === true) res.end(Buffer.alloc(1_500_000, 'x'));
        const [, bytes] = /^\/(\d+)$/.exec(req.url ?? '') ?? [];
        if (bytes !== undefined) res.end('x'.repeat(Number(bytes)));
        req.resume();
      },
      (server) => void new WebSocketServer({ server }),
    ),
  );
  const proxy = stack.use(await startProxy());
  proxy.routes.add({
    prefix: '/',
    target: upstream.url,
    access: 'public',
    owner,
    limits: routeLimits.parse(limits),
  });
  return { proxy, target: upstream.url, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test.each([{ request_timeout: 0.05 }, { idle_timeout: 0.05 }])(
  'an app that takes longer than %o is given up',
  async (limits) => {
    await using world = await startLimited(limits);
    const { proxy } = world;
    const unanswered = await rawClient(proxy.port, head('GET /'));
    expect(statusOf(await unanswered.until(/\r\n\r\n/))).toBe(504);
    // On a slow machine the beginning of an answer, too, may take longer.
    await expect
      .poll(async () => {
        const part = await rawClient(proxy.port, head('GET /part', 'Connection: close'));
        await part.closed;
        return part.text();
      })
      .toMatch(/^HTTP\/1.1 200 .*some/s);
    await eventually(() => proxy.liveConnections.size === 0);
  },
);

test('a body that comes in drops ends with the time of its request', async () => {
  await using world = await startLimited({ request_timeout: 0.1, idle_timeout: 60 });
  const client = await rawClient(world.proxy.port, head('POST /', 'Content-Length: 1000000'));
  const drops = setInterval(() => client.write('x'), 5);
  expect(statusOf(await client.until(/\r\n\r\n/))).toBe(408);
  clearInterval(drops);
  client.socket.destroy();
});

test('an answer goes out no faster than its route has it', async () => {
  await using world = await startLimited({ bytes_per_second: '10K' });
  const { proxy, target } = world;
  proxy.routes.add({ prefix: '/free/', target, access: 'public', owner });
  const limited = await rawClient(proxy.port, head('GET /large'));
  await limited.until('xxx');
  const free = await rawRequest(proxy.port, head('GET /free/large', 'Connection: close'));
  expect(free).toMatch(/x{1500000}$/);
  // The whole of it would take two minutes.
  expect(limited.text().length).toBeLessThan(1_000_000);
  limited.socket.destroy();
  await eventually(() => proxy.liveConnections.size === 0);
});

test.each([0, 10_500, 12_200, 13_000])('one of %i bytes comes whole', async (bytes) => {
  await using world = await startLimited({ bytes_per_second: '10K' });
  const client = await rawClient(world.proxy.port, head(`GET /${bytes}`, 'Connection: close'));
  await client.closed;
  expect(client.text().split('\r\n\r\n')[1]).toHaveLength(bytes);
});

test('a WebSocket of which nothing moves is closed, whatever holds for other routes', async () => {
  await using world = await startLimited({ idle_timeout: 0.001, request_timeout: 0.001 });
  const socket = new WebSocket(`ws://127.0.0.1:${world.proxy.port}/`);
  await once(socket, 'open');
  const closed = once(socket, 'close');
  await eventually(() => {
    world.proxy.webSockets.recordTraffic();
    return socket.readyState !== WebSocket.OPEN;
  });
  expect((await closed)[0]).toBe(1001);
});

function limiterOf(limits: Partial<RouteLimits>) {
  const clock = { nowMs: 1e6 };
  const limiter = createRouteLimiter(routeLimits.parse(limits), () => clock.nowMs);
  const take = (address: string, userName?: string) =>
    limiter.takeRequest({ address, userName })?.retryAfterSeconds ?? 0;
  return { clock, limiter, take };
}

test('the requests of a second may come at once, and what was refused costs nothing', () => {
  const { clock, take } = limiterOf({ requests_per_second: 3 });
  const burst = Array.from({ length: 5 }, () => take('192.0.2.1'));
  expect(burst).toEqual([0, 0, 0, 1, 1]);
  clock.nowMs += 334;
  expect([take('192.0.2.1'), take('192.0.2.1')]).toEqual([0, 1]);
  expect(take('::ffff:192.0.2.1')).toBe(1);
  expect(take('192.0.2.2')).toBe(0);
});

test('who is counted: a user from everywhere, or an address with its whole network', () => {
  const byUser = limiterOf({ requests_per_second: 0.1 });
  expect(byUser.take('192.0.2.1', 'alice')).toBe(0);
  expect(byUser.take('192.0.2.2', 'alice')).toBe(10);
  expect(byUser.take('192.0.2.1')).toBe(0);
  const byAddress = limiterOf({ requests_per_second: 0.1, per: 'address' });
  expect(byAddress.take('2001:db8::1', 'alice')).toBe(0);
  expect(byAddress.take('2001:db8::2:2', 'olga')).toBe(10);
});

test('bytes of answers are counted too, for all requests of a visitor together', () => {
  const { clock, limiter } = limiterOf({ bytes_per_second: 10_240 });
  const alice = { address: '192.0.2.1', userName: 'alice' };
  expect(limiter.takeBytes(alice, 10_240)).toBe(0);
  expect(limiter.takeBytes({ ...alice, address: '192.0.2.2' }, 5_120)).toBeCloseTo(500);
  expect(limiter.takeBytes({ address: '192.0.2.1' }, 10_240)).toBe(0);
  clock.nowMs += 1_500;
  expect(limiter.takeBytes(alice, 10_240)).toBe(0);
});

test('of very many visitors the latest are remembered', () => {
  const { take } = limiterOf({ requests_per_second: 0.1 });
  for (let index = 0; index < 20_000; index++) {
    expect(take(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)).toBe(0);
  }
  expect(take('10.0.78.31')).toBe(10);
  expect(take('10.0.0.0')).toBe(0);
});

test.each([
  ['127.0.0.1', true],
  ['::ffff:127.0.0.1', true],
  ['10.1.2.3', false],
  ['10.9.9.9', true],
  ['unix', true],
  ['2001:db8::1', true],
])('%s is kept out: %s', (address, isKeptOut) => {
  const { limiter } = limiterOf({
    allow_addresses: ['10.0.0.0/8'],
    deny_addresses: ['10.9.0.0/16'],
  });
  expect(limiter.clientProblem({ address }) !== undefined).toBe(isKeptOut);
});
