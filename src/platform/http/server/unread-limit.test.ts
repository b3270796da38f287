import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { until } from '../../../../test/support/test-hub.ts';
import { noteReader } from '../request-log.ts';
import { createUnreadLimit } from './slow-clients.ts';

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** The server's side of a connection, with so many bytes that its reader does not take. */
async function socketOf(userName: string | undefined, unread: number, address = '192.0.2.1') {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  open.push(client, socket);
  noteReader(socket, { userName, address });
  socket.cork();
  socket.write('x'.repeat(unread));
  return socket;
}

function limitOf(maxBytes: number) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  return { ...createUnreadLimit({ maxBytes, log }), lines };
}

test('of a reader above the bound, those are cut that have stood still for longest', async () => {
  const { check, lines } = limitOf(1_000);
  const [first, second] = [await socketOf('ann', 400), await socketOf('ann', 400)];
  const bob = await socketOf('bob', 900);
  check([second, bob, first], 0);
  const third = await socketOf('ann', 400);
  // Its reader takes all, and more comes.
  first.uncork();
  await until(() => first.writableLength === 0, 'it is taken');
  first.cork();
  first.write('x'.repeat(400));
  check([first, second, third, bob], 1_000);
  expect([first, second, third, bob].map(({ destroyed }) => destroyed)).toEqual([
    false,
    true,
    false,
    false,
  ]);
  expect(lines).toMatchObject([{ reader: 'ann', connections: 1, unreadBytes: 1_200 }]);
});

test('without a login, all of an address are one reader, and a user is none of them', async () => {
  const { check } = limitOf(500);
  const sockets = [
    await socketOf(undefined, 300, '2001:db8::1'),
    await socketOf(undefined, 300, '2001:db8::2'),
    await socketOf(undefined, 300, '2001:db8:1::1'),
    await socketOf('2001:db8::1', 300),
  ];
  check(sockets, 0);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, false, false, false]);
});

test('0 is no limit', async () => {
  const socket = await socketOf('ann', 10_000);
  limitOf(0).check([socket], 0);
  expect(socket.destroyed).toBe(false);
});
