import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createFairListener } from './listener.ts';

const response = {} as ServerResponse;
const request = (url: string) => ({ url }) as IncomingMessage;

function busyFor(milliseconds: number): void {
  const endsAt = performance.now() + milliseconds;
  while (performance.now() < endsAt);
}

test('a burst of requests lets others have their turn, and all are answered in order', async () => {
  const answered: string[] = [];
  const allAnswered = Promise.withResolvers<void>();
  const listener = createFairListener(async ({ url = '' }) => {
    answered.push(url);
    busyFor(2);
    if (answered.includes('/last')) allAnswered.resolve();
  }, []);
  for (let index = 0; index < 50; index += 1) listener(request(`/${index}`), response);
  listener(request('/last'), response);
  setImmediate(() => answered.push('somebody else'));
  await allAnswered.promise;
  expect(answered.indexOf('somebody else')).toBeLessThan(25);
  expect(answered.filter((url) => url !== 'somebody else')).toEqual([
    ...Array.from({ length: 50 }, (_, index) => `/${index}`),
    '/last',
  ]);
});

test('what is urgent is answered before a burst that came first', async () => {
  const answered: string[] = [];
  const allAnswered = Promise.withResolvers<void>();
  const listener = createFairListener(
    async ({ url = '' }) => {
      answered.push(url);
      busyFor(2);
      if (answered.length === 21) allAnswered.resolve();
    },
    ['/hub/health'],
  );
  for (let index = 0; index < 20; index += 1) listener(request('/hub/api/users'), response);
  listener(request('/hub/health'), response);
  expect(answered).toContain('/hub/health');
  expect(answered.length).toBeLessThan(3);
  // The next test stops the clock, by which the rest of the burst would be busy for ever.
  await allAnswered.promise;
  expect(answered.filter((url) => url === '/hub/health')).toHaveLength(1);
});

test('who comes with a crowd is let in before the first of it is answered', async () => {
  // By the real clock a busy machine would make them wait too long.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createServer();
  let accepted = 0;
  server.on('connection', () => {
    accepted += 1;
  });
  const acceptedAtAnswer: number[] = [];
  const listener = createFairListener(
    async (_req, res) => {
      acceptedAtAnswer.push(accepted);
      res.end('answered');
    },
    [],
    [server],
  );
  server.on('request', listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: 100 }, () => {
    const client = connect(port, '127.0.0.1');
    client.end('GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n');
    client.resume();
    return client;
  });
  await Promise.all(clients.map((client) => once(client, 'close')));
  server.close();
  expect(acceptedAtAnswer).toHaveLength(100);
  expect(acceptedAtAnswer[0]).toBeGreaterThan(90);
});
