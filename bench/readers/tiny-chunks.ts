// An application in a process of its own, whose path `endless` answers with chunks of one byte without end.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import process from 'node:process';

const piece = '1\r\nx\r\n'.repeat(10_000);
const server = createServer((socket) => {
  const send = () => {
    while (socket.write(piece));
  };
  socket.on('error', () => {});
  socket.on('data', (request) => {
    if (!/^GET \S*endless /.test(request.toString('latin1'))) {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      return;
    }
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    socket.on('drain', send);
    send();
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
