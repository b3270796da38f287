// An app whose pages keep WebSockets open, in a process of its own.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
