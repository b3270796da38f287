import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Koa from 'koa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { compressPages, sendFile } from './compression.ts';

const page = `<p>${'of a long page '.repeat(200)}</p>`;
const file = Buffer.from('a { color: red }\n'.repeat(200));

async function open(isHttps: boolean) {
  const app = new Koa();
  app.use(compressPages({ isHttps }));
  app.use(async (ctx) => {
    if (ctx.path === '/file.css') {
      ctx.set('ETag', '"digest"');
      ctx.type = 'text/css';
      return sendFile(ctx, file);
    }
    ctx.type = ctx.path === '/json' ? 'json' : 'text/html; charset=utf-8';
    ctx.body = ctx.path === '/short' ? '<p>short</p>' : page;
  });
  const handle = app.callback();
  const server = createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return async (path: string, headers: Record<string, string>) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, agent: false }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const { statusCode: status, headers: received } = answer;
    return { status, headers: received, body: await buffer(answer) };
  };
}

const all = 'gzip, deflate, br, zstd';

describe('a page', () => {
  test.for([
    [{ 'accept-encoding': all, 'sec-fetch-site': 'same-origin' }, 'br'],
    [{ 'accept-encoding': all, 'sec-fetch-site': 'none' }, 'br'],
    [{ 'accept-encoding': 'gzip, br;q=0', 'sec-fetch-site': 'none' }, 'gzip'],
    [{ 'accept-encoding': 'deflate', 'sec-fetch-site': 'none' }, undefined],
    [{ 'sec-fetch-site': 'none' }, undefined],
    [{ 'accept-encoding': all, 'sec-fetch-site': 'cross-site' }, undefined],
    [{ 'accept-encoding': all, 'sec-fetch-site': 'same-site' }, undefined],
    [{ 'accept-encoding': all }, undefined],
  ] as const)(
    'over TLS, asked for with %j, is sent in the coding %s',
    async ([headers, coding]) => {
      const ask = await open(true);
      const answer = await ask('/', headers);
      expect(answer.headers['content-encoding']).toBe(coding);
      if (coding === undefined) {
        expect(answer.body.toString()).toBe(page);
        return;
      }
      const decompress = { br: brotliDecompressSync, gzip: gunzipSync }[coding];
      expect(decompress(answer.body).toString()).toBe(page);
      expect(answer.headers.vary).toContain('Accept-Encoding');
      expect(answer.body.length).toBeLessThan(page.length / 10);
    },
  );

  test('without TLS is compressed whoever asks, but for another site', async () => {
    const ask = await open(false);
    expect((await ask('/', { 'accept-encoding': all })).headers['content-encoding']).toBe('br');
    const headers = { 'accept-encoding': all, 'sec-fetch-site': 'cross-site' };
    expect((await ask('/', headers)).headers['content-encoding']).toBeUndefined();
  });

  test.for(['/json', '/short'])('%s is none, or too short', async (path) => {
    const ask = await open(false);
    const { headers } = await ask(path, { 'accept-encoding': all });
    expect(headers['content-encoding']).toBeUndefined();
  });
});

test('a file has an ETag for each coding, and is not sent again to who has it', async () => {
  const ask = await open(true);
  const plain = await ask('/file.css', {});
  expect([plain.headers.etag, plain.body]).toEqual(['"digest"', file]);
  const { headers, body } = await ask('/file.css', { 'accept-encoding': all });
  expect(headers).toMatchObject({ etag: '"digest-br"', 'content-encoding': 'br' });
  expect(brotliDecompressSync(body)).toEqual(file);
  const again = { 'accept-encoding': all, 'if-none-match': '"digest-br"' };
  expect((await ask('/file.css', again)).status).toBe(304);
  expect((await ask('/file.css', { 'if-none-match': '"digest-br"' })).status).toBe(200);
});
