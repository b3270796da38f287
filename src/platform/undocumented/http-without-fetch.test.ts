import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const file = pathToFileURL(join(import.meta.dirname, 'http-without-fetch.ts')).href;

/** What a fresh process says after running a text. */
async function saidBy(program: string): Promise<unknown> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program]);
  return JSON.parse(stdout);
}

test('node:http can be imported without fetch, which is there when it is used', async () => {
  const said = await saidBy(`
    const hasFetch = () => process.moduleLoadList.some((name) => name.includes('undici'));
    const { importHttpWithoutFetch } = await import(${JSON.stringify(file)});
    await importHttpWithoutFetch();
    const http = await import('node:http');
    const before = hasFetch();
    const found = [typeof http.createServer, typeof http.default.WebSocket, typeof Response];
    console.log(JSON.stringify({ before, found, after: hasFetch() }));
  `);
  expect(said).toEqual({ before: false, found: ['function', 'function', 'function'], after: true });
});

test('left alone, Node.js loads fetch with node:http', async () => {
  const said = await saidBy(`
    await import('node:http');
    console.log(process.moduleLoadList.some((name) => name.includes('undici')));
  `);
  expect(said).toBe(true);
});
