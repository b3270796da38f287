import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createForwardAuthWorld, type ForwardAuthWorld } from '../support/forward-auth-world.ts';
import { sendRaw } from '../support/raw-request.ts';
import { requires } from '../support/requires.ts';

const canRun = requires('nginx', 'caddy');

type Kind = 'forwarded' | 'original';

/** What a proxy asks about a request: Traefik with `forwarded`, as its documentation has it. */
function askingAbout(kind: Kind, host: string, path: string): string[] {
  return kind === 'forwarded'
    ? [
        'X-Forwarded-Method: GET',
        'X-Forwarded-Proto: http',
        `X-Forwarded-Host: ${host}`,
        `X-Forwarded-Uri: ${path}`,
        'X-Forwarded-For: 192.0.2.1',
        'X-Forwarded-Port: 80',
        'X-Forwarded-Server: traefik',
      ]
    : ['X-Original-Method: GET', `X-Original-URL: http://${host}${path}`];
}

describe.runIf(canRun).each(['forwarded', 'original'] as const)('asked by %s headers', (kind) => {
  const open = 'nginx.localhost';
  const closed = 'closed-nginx.localhost';
  let asked: ForwardAuthWorld;
  beforeAll(async () => {
    asked = await createForwardAuthWorld({ headers: kind });
  });
  afterAll(() => asked[Symbol.asyncDispose]());

  async function statusOf(lines: readonly string[], way = 'forward-auth'): Promise<number> {
    const hasHost = lines.some((line) => /^host:/i.test(line));
    const host = hasHost ? [] : [`Host: ${new URL(asked.direct).host}`];
    const head = [`GET /hub/${way} HTTP/1.1`, ...host, ...lines, 'Connection: close'];
    return (await sendRaw(asked.direct, `${head.join('\r\n')}\r\n\r\n`)).status;
  }

  test('row 15: the other kind, and whatever else names a request, must say the same', async () => {
    const other: Kind = kind === 'forwarded' ? 'original' : 'forwarded';
    const about = askingAbout(kind, open, '/public/x');
    const same = [
      [],
      askingAbout(other, open, '/public/x'),
      askingAbout(other, `${open.toUpperCase()}.:80`, '/public/x'),
      ['X-Original-URI: /public/x', 'X-Rewrite-URL: /public/x', 'X-HTTP-Method-Override: GET'],
      [`Forwarded: host=${closed}`],
      [`Host: ${open}`],
    ];
    for (const lines of same) {
      expect({ lines, status: await statusOf([...about, ...lines]) }).toEqual({
        lines,
        status: 200,
      });
    }
    const different = [
      askingAbout(other, closed, '/public/x'),
      askingAbout(other, open, '/public/y'),
      askingAbout(other, `${open},${open}`, '/public/x'),
      askingAbout(other, `u@${open}`, '/public/x'),
      ['X-Forwarded-Host: '],
      [`X-Forwarded-Host: ${closed}`],
      [`X-Forwarded-Host: ${open}, ${open}`],
      ['X-Forwarded-Uri: /public/y'],
      ['X-Forwarded-Method: POST'],
      ['X-Forwarded-Proto: https'],
      ['X-Forwarded-Proto: ftp'],
      ['X-Original-Method: POST'],
      ['X-Original-Method:'],
      ['X-Original-URL:'],
      [`X-Original-URL: https://${open}/public/x`],
      [`X-Original-URL: http://${open}`],
      [`X-Original-URL: //${open}/public/x`],
      ['X-Original-URL: /public/x'],
      ['X-Original-URI: /public/y'],
      [`X-Original-Host: ${closed}`],
      ['X-Rewrite-URL: /secret'],
      ['X-HTTP-Method-Override: DELETE'],
      ['X-Method: DELETE'],
      ['X_Forwarded_Uri: /public/x'],
      ['X.Original.URL: /public/x'],
      ['X-Hub-User: alice'],
      ['X.Hub.User: alice'],
      ['X-Hub~: alice'],
      [`Host: ${closed}`],
      ['Host: a, b'],
    ].filter(
      // What a proxy sets itself is there once.
      ([line = '']) => !(kind === 'forwarded' && line === 'X-Forwarded-Proto: https'),
    );
    for (const lines of different) {
      for (const way of ['forward-auth', 'auth-request']) {
        const status = await statusOf([...about, ...lines], way);
        const isHost = lines[0]?.startsWith('Host: a');
        const expected = way === 'auth-request' && isHost !== true ? 403 : 400;
        expect({ way, lines, status }).toEqual({ way, lines, status: expected });
      }
    }
  });

  test('row 15: one kind alone counts, and all of it has to be there', async () => {
    const other: Kind = kind === 'forwarded' ? 'original' : 'forwarded';
    const about = askingAbout(kind, open, '/public/x');
    for (const lines of [
      [],
      askingAbout(other, open, '/public/x'),
      ...about
        .filter((line) => !/^x-forwarded-(?:proto|for|port|server):/i.test(line))
        .map((left) => about.filter((line) => line !== left)),
      [`Host: ${open}`, 'X-Forwarded-Method: GET', 'X-Forwarded-Uri: /public/x'],
    ]) {
      expect({ lines, status: await statusOf(lines) }).toEqual({ lines, status: 400 });
    }
  });

  test('row 15: a host that is none is asked about by nobody', async () => {
    for (const host of [
      `${closed}:80,${open}`,
      `${open},${open}`,
      `u@${open}`,
      `${open}:x`,
      `[${open}]`,
      '',
      ':80',
    ]) {
      const status = await statusOf(askingAbout(kind, host, '/public/x'));
      expect({ host, status }).toEqual({ host, status: 400 });
    }
    for (const host of [open.toUpperCase(), `${open}:8443`, `${open}.`]) {
      expect(await statusOf(askingAbout(kind, host, '/public/x'))).toBe(200);
    }
  });

  // The nginx of this world asks with forwarded headers: only then does the browser get a cookie.
  if (kind === 'forwarded') {
    test('row 27: a handshake is known by each of its headers, and any origin but the own is refused', async () => {
      const browser = await asked.hub.logIn('alice');
      const url = asked.urlOf('nginx');
      await browser.open(`${url}page`);
      const { host, origin } = new URL(url);
      const about = [
        ...askingAbout(kind, host, '/socket'),
        `Cookie: ${browser.cookieHeader(url)}`,
        'X-Requested-With: x',
      ];
      const handshakes = [
        ['Upgrade: websocket'],
        ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
        ['Sec-WebSocket-Version: 13'],
        ['Sec-Fetch-Mode: websocket'],
      ];
      // Both before and after the visitor is known.
      for (const _ of [1, 2]) {
        for (const lines of handshakes) {
          for (const [line, expected] of [
            [[], 403],
            [['Origin: http://ada.localhost'], 403],
            [[`Origin: http://${new URL(asked.direct).host}`], 403],
            [[`Origin: ${origin}`], 200],
          ] as const) {
            const status = await statusOf([...about, ...lines, ...line]);
            expect({ lines, line, status }).toEqual({ lines, line, status: expected });
          }
        }
        // Any of these may be a handshake of which a proxy left nothing.
        expect(await statusOf([...about, 'Origin: http://ada.localhost'])).toBe(403);
        expect(await statusOf([...about, `Origin: ${origin}`])).toBe(200);
        // What a script fetches is for the app to allow; its program shows a token.
        const fetched = ['Origin: http://ada.localhost', 'Sec-Fetch-Mode: cors'];
        expect(await statusOf([...about, ...fetched])).toBe(200);
        const program = [
          `Authorization: token ${await asked.tokenOf('alice')}`,
          'Origin: http://ada.localhost',
        ];
        expect(await statusOf([...askingAbout(kind, host, '/page'), ...program])).toBe(200);
      }
    });
  }
});
