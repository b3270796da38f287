/**
 * Loads a proxy with uploads or WebSockets and prints what happened as JSON:
 * `upload <url> <MiB> <connections>`, `echo <url> <seconds> <connections>`, and `idle <url> 0
 * <connections>`, which says `open` and holds them until its input ends.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

const [, , kind = '', address = '', amount = '0', count = '0'] = process.argv;
const url = new URL(address);
const connections = Number(count);

if (kind === 'upload') await upload(Number(amount));
else if (kind === 'echo') await echo(Number(amount));
else await idle();

async function upload(mebibytes: number): Promise<void> {
  const chunk = Buffer.alloc(1024 * 1024, 'u');
  const started = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const outgoing = request(url, {
        method: 'PUT',
        headers: { 'content-length': mebibytes * chunk.length },
      });
      const answered = once(outgoing, 'response');
      for (let sent = 0; sent < mebibytes; sent++) {
        if (!outgoing.write(chunk)) await once(outgoing, 'drain');
      }
      outgoing.end();
      const [response] = await answered;
      const received = await text(response);
      if (received !== String(mebibytes * chunk.length)) throw new Error(`arrived: ${received}`);
    }),
  );
  print({ seconds: (performance.now() - started) / 1000, units: mebibytes * connections });
}

/** One message under way on each connection; the next is sent when its echo is there. */
async function echo(seconds: number): Promise<void> {
  const payload = Buffer.alloc(100, 'w');
  const message = Buffer.concat([Buffer.from([0x82, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
  const sockets = await Promise.all(Array.from({ length: connections }, open));
  let echoed = 0;
  for (const socket of sockets) {
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received < payload.length + 2) return;
      received = 0;
      echoed += 1;
      socket.write(message);
    });
    socket.write(message);
  }
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  print({ seconds: (performance.now() - started) / 1000, units: echoed });
  process.exit();
}

async function idle(): Promise<void> {
  for (let opened = 0; opened < connections; opened += 50) {
    await Promise.all(Array.from({ length: 50 }, open));
  }
  process.stdout.write('open\n');
  await text(process.stdin);
  process.exit();
}

async function open(): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname).setNoDelay(true);
  socket.on('error', () => {});
  socket.write(
    `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\n` +
      'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nOrigin: ${url.origin}\r\n\r\n`,
  );
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    head += chunk.toString('latin1');
  }
  if (!head.startsWith('HTTP/1.1 101')) throw new Error(head);
  return socket;
}

function print(result: { readonly seconds: number; readonly units: number }): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
