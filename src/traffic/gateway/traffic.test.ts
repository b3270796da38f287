import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createRoute } from '../proxy/route.ts';
import { createTraffic } from './traffic.ts';

const route = createRoute(
  {
    prefix: '/services/wiki/',
    target: 'http://127.0.0.1:9',
    access: 'service',
    owner: { kind: 'service', name: 'wiki' },
    clientId: 'service-wiki',
  },
  0,
);

/** A request that is over, as far as anybody here looks. */
function closedRequest() {
  const socket = Object.assign(new EventEmitter(), { bytesWritten: 0 });
  const req = { headers: {}, method: 'GET', url: '/services/wiki/a?secret=1', socket };
  const res = { headersSent: true, statusCode: 200 };
  return { req: req as unknown as IncomingMessage, res: res as unknown as ServerResponse };
}

function setUp(
  accessLog: boolean | number,
  options: {
    readonly random?: () => number;
    readonly userOfSession?: (sessionId: string) => Promise<string | undefined>;
  } = {},
) {
  const lines: Record<string, unknown>[] = [];
  let counted = 0;
  const traffic = createTraffic({
    accessLog,
    clientAddress: () => ({
      address: '192.0.2.7',
      peerAddress: '192.0.2.7',
      isTrustedProxy: false,
      protocol: 'http',
      host: 'hub.test',
    }),
    userOfSession: async () => 'ada',
    count: () => {
      counted += 1;
    },
    log: pino({}, { write: (line) => lines.push(JSON.parse(line)) }),
    ...options,
  });
  return { lines, counted: () => counted, traffic };
}

test.each<[setting: boolean | number, expected: number]>([
  [true, 1_000],
  [1, 1_000],
  [0.25, 250],
  [0, 0],
  [false, 0],
])(
  'with the setting %s, %s of 1000 requests have a line, and all are counted',
  (setting, expected) => {
    let turn = 0;
    const random = () => {
      turn += 1;
      return (turn % 100) / 100;
    };
    const { lines, counted, traffic } = setUp(setting, { random });
    for (let sent = 0; sent < 1_000; sent += 1) {
      const { req, res } = closedRequest();
      traffic.requestClosed(req, res, { route });
    }
    expect(lines).toHaveLength(expected);
    expect(counted()).toBe(1_000);
  },
);

test('many unknown sessions cost few lookups, and every request its line', async () => {
  const waiting: (() => void)[] = [];
  const { lines, traffic } = setUp(true, {
    userOfSession: () => new Promise((resolve) => waiting.push(() => resolve(undefined))),
  });
  for (let sent = 0; sent < 500; sent += 1) {
    const { req, res } = closedRequest();
    traffic.requestClosed(req, res, { route, sessionId: `made-up-${sent}` });
  }
  expect(waiting.length).toBeLessThan(50);
  for (const answer of waiting) answer();
  await new Promise(setImmediate);
  expect(lines).toHaveLength(500);
});

test('a database that is away costs a line its user and nothing else', async () => {
  const { lines, traffic } = setUp(true, {
    userOfSession: () => Promise.reject(new Error('no database')),
  });
  const { req, res } = closedRequest();
  traffic.requestClosed(req, res, { route, sessionId: 'one' });
  await new Promise(setImmediate);
  expect(lines).toEqual([
    expect.objectContaining({ path: '/services/wiki/a', status: 200, address: '192.0.2.7' }),
  ]);
  expect(lines[0]).not.toHaveProperty('user');
});

test('a line names the user, the client that came with a token of theirs, and where it went', () => {
  const { lines, traffic } = setUp(true);
  const { req, res } = closedRequest();
  const clientId = 'https://agents.example/client.json';
  traffic.requestClosed(req, res, { route, userName: 'ada', clientId });
  expect(lines).toMatchObject([{ user: 'ada', client: clientId, route: '/services/wiki/' }]);
});
