// A service known by a name, which has to be looked up for every request: it keeps no connection. It runs
// in a process of its own, so that what the measuring program does meanwhile counts for nothing.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';

const server = createServer((_req, res) => {
  res.setHeader('connection', 'close');
  res.end('ok\n');
}).listen(0, 'localhost');
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
