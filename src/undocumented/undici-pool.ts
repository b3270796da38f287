import { createRequire } from 'node:module';
import type undici from 'undici';

const require = createRequire(import.meta.url);

/*
 * The two parts of undici that forward requests, from their own files: the package as a whole has clients,
 * caches, mocks and all that `fetch` needs beside them, three megabytes of memory in each process.
 */
export const Pool: typeof undici.Pool = require('undici/lib/dispatcher/pool.js');
// As the package does for all of its calls.
Pool.prototype.request ??= require('undici/lib/api/api-request.js');
export const buildConnector: typeof undici.buildConnector = require('undici/lib/core/connect.js');
