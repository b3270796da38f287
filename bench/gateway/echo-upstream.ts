/**
 * An upstream for what nginx cannot be: it reads uploads to their end and echoes WebSocket messages.
 * The messages of the load are unmasked by a key of zeros, so the echo is a copy behind a shorter head.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const server = createServer((req, res) => {
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  req.on('end', () => res.end(String(bytes)));
});
server.on('upgrade', (req, socket) => {
  const key = `${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.on('error', () => {});
  socket.on('data', (message: Buffer) => {
    // Two bytes of head and four of mask before at most 125 bytes of payload (RFC 6455 §5.2).
    const payload = message.subarray(6);
    socket.write(Buffer.concat([Buffer.from([message[0] ?? 0, payload.length]), payload]));
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
