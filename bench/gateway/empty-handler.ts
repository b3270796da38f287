/** What Node.js itself can do: answers each request with 1 KiB, whatever it asks for. */
import { createServer } from 'node:http';

const body = Buffer.alloc(1024, 'e');
createServer((_req, res) => res.end(body)).listen(Number(process.argv[2]), '127.0.0.1');
