// An application that misbehaves on request. Below its prefix:
//   /stall   takes the request and says nothing      /reset   resets in the middle of its answer
//   /drip    a byte now and then, without end        /events  server-sent events
//   /flood   writes 4 MiB to its output
//   /large   1 MiB                                   else a short answer; bodies are read and counted
// and a WebSocket at any path that sends every message back. Its port is its argument.
import { createServer } from 'node:http';
import { argv } from 'node:process';
import { WebSocketServer } from 'ws';

const large = Buffer.alloc(1 << 20, 'x');

const server = createServer((request, response) => {
  response.on('error', () => {});
  const kind = request.url?.split('?', 1)[0]?.split('/').at(-1);
  if (kind === 'stall') return;
  if (kind === 'reset') {
    response.writeHead(200, { 'content-length': 1_000_000 });
    response.write('the beginning', () => request.socket.resetAndDestroy());
    return;
  }
  if (kind === 'drip' || kind === 'events') {
    response.writeHead(200, {
      'content-type': kind === 'events' ? 'text/event-stream' : 'application/octet-stream',
    });
    const timer = setInterval(() => response.write('data: x\n\n'), 50);
    response.on('close', () => clearInterval(timer));
    return;
  }
  if (kind === 'large') {
    response.end(large);
    return;
  }
  if (kind === 'flood') {
    for (let line = 0; line < 8_192; line += 1) console.log('flood'.repeat(102));
  }
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  request.on('end', () => response.end(`${bytes}`));
});
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => {
  socket.on('error', () => {});
  socket.on('message', (message) => socket.send(String(message)));
});
server.listen(Number(argv[2]), '127.0.0.1', () => process.send?.('listening'));
