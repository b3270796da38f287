import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { createForwardAuthWorld, type ForwardAuthWorld } from '../support/forward-auth-world.ts';
import { sendRaw } from '../support/raw-request.ts';
import { requires } from '../support/requires.ts';
import { requestsNamingBoth } from './two-hosts.ts';

// nginx and Caddy run as docs/how-to/forward-auth.md sets them up. Behind each of them is an app with a part that is
// open to everyone, and one that only olga may open. What is tried is to be asked about one and to open the other.

const canRun = requires('nginx', 'caddy');
/** Characters of header names (RFC 9110 §5.6.2) that some server turns into an underscore. */
const separators = [..."-_.!#$%&'*+^`|~"];

let world: ForwardAuthWorld;
let tokens: Record<'alice' | 'olga', string>;

/** Sends a head, and returns the answer with what the apps saw of it. */
async function send(base: string, lines: readonly string[]) {
  world.seen.length = 0;
  const hasConnection = lines.some((line) => /^connection:/i.test(line));
  const head = [...lines, ...(hasConnection ? [] : ['Connection: close'])];
  const { status } = await sendRaw(base, `${head.join('\r\n')}\r\n\r\n`);
  return { status, seen: [...world.seen] };
}

beforeAll(async () => {
  if (!canRun) return;
  world = await createForwardAuthWorld();
  tokens = { alice: await world.tokenOf('alice'), olga: await world.tokenOf('olga') };
});
afterAll(async () => world?.[Symbol.asyncDispose]());

describe.runIf(canRun).each(['nginx', 'caddy'] as const)('behind %s as documented', (proxy) => {
  const open = `${proxy}.localhost`;
  const closed = `closed-${proxy}.localhost`;
  const base = () => world.proxies[proxy];

  test('row 15: the app that is asked about is the one that is opened', async () => {
    const requests = ['/public/x', '/secret'].flatMap((path) =>
      requestsNamingBoth(path, { open, closed }).flatMap((lines) => [
        lines,
        [...lines, `Authorization: token ${tokens.alice}`],
      ]),
    );
    expect(requests.length).toBeGreaterThan(300);
    const opened: unknown[] = [];
    for (const lines of requests) {
      const { seen, status } = await send(base(), lines);
      for (const { app, url, headers } of seen) {
        const isAllowed =
          app === 'open' && (url.startsWith('/public/') || headers['x-hub-user'] === 'alice');
        if (!isAllowed) opened.push({ lines, status, app, url });
      }
    }
    expect(opened).toEqual([]);
    // Who may open it does.
    const olga = [`Host: ${closed}`, `Authorization: token ${tokens.olga}`];
    expect((await send(base(), ['GET /secret HTTP/1.1', ...olga])).seen).toMatchObject([
      { app: 'closed', headers: { 'x-hub-user': 'olga' } },
    ]);
    expect((await send(base(), ['GET /public/x HTTP/1.1', `Host: ${open}`])).status).toBe(200);
  });

  test('row 15: no header of the visitor says what is asked about', async () => {
    const claims = [
      ...['http', 'https'].flatMap((scheme) =>
        [
          `//${open}/public/x`,
          `//${open}/secret`,
          `//${open}`,
          `//${closed}@${open}/public/x`,
          `//${open}:80/public/x`,
          `//${closed},${open}/public/x`,
        ].map((rest) => `X-Original-URL: ${scheme}:${rest}`),
      ),
      `X-Original-URL: //${open}/public/x`,
      'X-Original-URL: /public/x',
      'X-Original-URL: :',
      'X-Original-URL:',
      `X-Original-URL: http://${open}/public/x\r\nX-Original-URL: http://${open}/public/x`,
      'X-Original-Method: GET',
      'X-Original-Method: OPTIONS',
      'X-Original-URI: /public/x',
      'X-Original-Host: nginx.localhost',
      'X-Rewrite-URL: /public/x',
      'X_Original_URL: /public/x',
      'X.Original-URL: /public/x',
      `X-Forwarded-Host: ${open}`,
      `X-Forwarded-Host: ${open}\r\nX-Forwarded-Host: ${open}`,
      'X-Forwarded-Uri: /public/x',
      'X-Forwarded-Method: GET',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Port: 80',
      'X-Forwarded-Prefix: /public',
      'X-Forwarded-Path: /public/x',
      `Forwarded: host=${open};proto=http`,
      'X-HTTP-Method-Override: GET',
    ];
    const opened: unknown[] = [];
    const asAlice = `Authorization: token ${tokens.alice}`;
    for (const [index, first] of claims.entries()) {
      for (const [host, path, ...rest] of [
        [closed, '/public/x'],
        [closed, '/secret', asAlice],
        [open, '/admin/x', asAlice],
        ...claims.slice(index).map((second) => [closed, '/public/x', second]),
      ]) {
        const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, first, ...rest];
        const { seen, status } = await send(base(), lines);
        for (const { app, url } of seen) opened.push({ lines, status, app, url });
      }
    }
    expect(opened).toEqual([]);
  });

  test('row 3: no name that a server could read as one of the identity passes', async () => {
    const passed: unknown[] = [];
    for (const first of separators) {
      for (const second of separators) {
        for (const path of ['/public/x', '/page']) {
          const name = `X${first}hub${second}User`;
          const lines = [`GET ${path} HTTP/1.1`, `Host: ${open}`, `${name}: root`];
          if (path === '/page') lines.push(`Authorization: token ${tokens.alice}`);
          const { seen } = await send(base(), lines);
          for (const { rawHeaders } of seen) {
            if (rawHeaders.includes('root')) passed.push({ path, name });
          }
        }
      }
    }
    expect(passed).toEqual([]);
  });

  test('row 3: nor do names of what says which request it is', async () => {
    const passed: unknown[] = [];
    for (const separator of separators.slice(1)) {
      for (const rest of [
        'Original-URL',
        'Rewrite-URL',
        'Forwarded-Host',
        'HTTP-Method-Override',
      ]) {
        const name = `X${separator}${rest}`;
        const lines = ['GET /public/x HTTP/1.1', `Host: ${open}`, `${name}: claimed`];
        const { seen } = await send(base(), lines);
        if (seen.some(({ rawHeaders }) => rawHeaders.includes('claimed'))) passed.push(name);
      }
    }
    expect(passed).toEqual([]);
  });

  test('row 5: Connection takes the identity out of no request', async () => {
    for (const options of [
      'X-Hub-User',
      'close, X-Hub-User',
      'keep-alive, x-hub-user, X-Hub-Groups, X-Hub-Scopes, X-Hub-Assertion',
      'upgrade, X-Hub-User',
      'X-Hub-User\r\nConnection: X-Hub-Assertion, close',
    ]) {
      const { seen } = await send(base(), [
        'GET /page HTTP/1.1',
        `Host: ${open}`,
        `Authorization: token ${tokens.alice}`,
        'User-Agent: x',
        `Connection: ${options}`,
        // Ends the connection where the line above does not.
        ...(options.includes('close') ? [] : ['Connection: close']),
      ]);
      expect({ options, seen }).toMatchObject({
        options,
        seen: [{ headers: { 'x-hub-user': 'alice' } }],
      });
      expect(seen[0]?.headers['x-hub-assertion']).toMatch(/^ey/);
      expect(seen[0]?.headers['connection'] ?? '').not.toMatch(/hub/i);
    }
  });

  test('row 27: pages of a neighbour open no WebSocket', async () => {
    const browser = await world.hub.logIn('alice');
    const url = world.urlOf(proxy);
    await browser.open(`${url}page`);
    const { host, origin } = new URL(url);
    const cookie = browser.cookieHeader(url);
    const { port, protocol } = new URL(base());
    const open = (headers: Record<string, string>) =>
      new WebSocket(`${protocol.replace('http', 'ws')}//127.0.0.1:${port}/socket`, {
        headers: { host, cookie, ...headers },
      });
    for (const headers of [
      { origin: 'http://ada.localhost' },
      { origin: 'null' },
      { origin: 'http://ada.localhost', 'sec-fetch-mode': 'websocket' },
      { origin: `${origin}.evil.example` },
      { origin: 'http://hub' },
      {},
    ]) {
      const socket = open(headers);
      const outcome = await once(socket, 'message').then(
        ([message]) => `opened as ${message}`,
        (error: Error) => error.message,
      );
      socket.terminate();
      expect({ headers, outcome }).toEqual({
        headers,
        outcome: 'Unexpected server response: 403',
      });
    }
    const own = open({ origin });
    expect(String((await once(own, 'message'))[0])).toBe('alice');
    own.terminate();
  });
});
