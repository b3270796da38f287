// Clients that ask and read nothing, in a process of their own. Told an address and how many, it opens 200 a second, each
// of which asks three times without waiting; one that is closed is opened again. `0` closes all.
import { connect, type Socket } from 'node:net';
import process from 'node:process';

interface Order {
  readonly url: string;
  readonly count: number;
}

const opensEveryMs = 5;
const open = new Set<Socket>();
let order: Order = { url: '', count: 0 };

function openOne(): void {
  if (open.size >= order.count) return;
  const { hostname, port, host, pathname } = new URL(order.url);
  const socket = connect({ host: hostname, port: Number(port) });
  open.add(socket);
  socket.pause();
  socket.on('error', () => {}).on('close', () => open.delete(socket));
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(3));
}

process.on('message', (next: Order) => {
  order = next;
  if (order.count > 0) return;
  for (const socket of open) socket.destroy();
  process.send?.('closed');
});
setInterval(openOne, opensEveryMs);
process.send?.('ready');
