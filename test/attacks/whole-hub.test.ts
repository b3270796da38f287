import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitForm, submitLogin } from '../support/test-hub.ts';
import {
  type AttackedHub,
  answerTo,
  attack,
  bytesOf,
  handshakeOf,
  isHealthy,
  startAttackedHub,
} from './hub-harness.ts';
import { statusOf } from './proxy-harness.ts';

let hub: AttackedHub;
let origin: string;
/** Cookies of alice for the guarded application, and for the hub itself. */
let appCookie: string;
let hubCookie: string;
let alice: FakeBrowser;

beforeAll(async () => {
  hub = await startAttackedHub({ Authenticator: { admin_users: ['root'] } });
  origin = new URL(hub.url).origin;
  alice = await hub.visitor('alice');
  appCookie = alice.cookieHeader(`${hub.url}services/guarded/`);
  hubCookie = alice.cookieHeader(`${hub.url}hub/`);
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** What the applications saw of one request, and what its client was told. */
async function ask(requestLine: string, headers: readonly string[] = [], body = '') {
  hub.seen.length = 0;
  const answer = await answerTo(hub, bytesOf(requestLine, headers, body));
  return { answer, status: statusOf(answer), seen: [...hub.seen] };
}

const headerOf = (answer: string, name: string) =>
  new RegExp(`\\r\\n${name}: ([^\\r\\n]*)`, 'i').exec(answer)?.[1];

describe('request smuggling and header spoofing, through the guard', () => {
  test.for(['DELETE', 'OPTIONS', 'GET', 'POST'])(
    'row 1: chunked %s carries no second request',
    async (method) => {
      const inner = 'GET /services/guarded/admin HTTP/1.1\r\nHost: a\r\nX-Hub-User: root\r\n\r\n';
      const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
      const { status, seen } = await ask(
        `${method} /services/guarded/x`,
        [`Cookie: ${appCookie}`, `Origin: ${origin}`, 'Transfer-Encoding: chunked'],
        chunk,
      );
      expect(status).toBe(200);
      expect(seen.map(({ method: seenMethod, url, body }) => [seenMethod, url, body])).toEqual([
        [method, '/services/guarded/x', inner],
      ]);
      expect(seen[0]?.headers['x-hub-user']).toBe('alice');
    },
  );

  test('row 2: Expect: 100-continue carries no forged identity past the guard', async () => {
    const { seen } = await ask('GET /services/guarded/x', [
      `Cookie: ${appCookie}`,
      'Expect: 100-continue',
      'X-Hub-User: mallory',
    ]);
    expect(seen[0]?.headers['x-hub-user']).toBe('alice');
  });

  test('rows 3 to 6: no header of a client speaks for the gateway', async () => {
    const { seen } = await ask('GET /services/guarded/x', [
      `Cookie: ${appCookie}`,
      'Connection: close, X-Hub-User, X-Hub-Assertion, X-Forwarded-For, Cookie',
      'X_Hub_User: mallory',
      'x-hub-GROUPS: mallory',
      'X-Hub-Admin: mallory',
      'X-Forwarded-User: mallory',
      'X-Forwarded-For: 203.0.113.1',
      'X-Forwarded-Uri: /open/mallory',
      'X-Original-URL: /open/mallory',
      'Remote-User: mallory',
    ]);
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(seen)).not.toMatch(/mallory|203\.0\.113/);
    expect(seen[0]?.headers).toMatchObject({
      'x-hub-user': 'alice',
      'x-hub-groups': '',
      'x-forwarded-for': '127.0.0.1',
    });
  });

  test('row 6: no rewritten address makes a guarded path an open one', async () => {
    for (const name of ['X-Forwarded-Uri', 'X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Path']) {
      const { status, seen } = await ask('GET /services/guarded/x', [`${name}: /open/x`]);
      expect([name, status, seen]).toEqual([name, 302, []]);
    }
  });

  test('row 44: headers beyond the thousandth are refused, not left out', async () => {
    const fill = Array.from({ length: 1_500 }, () => 'a:');
    const { status, seen } = await ask('GET /services/guarded/x', [
      ...fill,
      `Cookie: ${appCookie}`,
      'X-Hub-User: mallory',
    ]);
    expect([status, seen]).toEqual([431, []]);
  });

  test('row 45: an upgrade to h2c is a plain request', async () => {
    const { answer, seen } = await ask('GET /open/x', [
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
    ]);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(seen[0]?.headers).not.toHaveProperty('upgrade');
  });

  test('row 55: TRACE is 405 and CONNECT is refused, and both reach no application', async () => {
    for (const path of ['/open/x', '/services/guarded/x', '/hub/login']) {
      const { status, seen } = await ask(`TRACE ${path}`, [`Cookie: ${appCookie}`]);
      expect([path, status, seen]).toEqual([path, 405, []]);
    }
    expect((await ask('CONNECT evil.example:443')).status).toBe(405);
  });
});

describe('path confusion: what is guarded stays guarded', () => {
  test.for([
    '/services/guarded%2fx',
    '/services%2fguarded/x',
    '/services/./guarded/x',
    '/services/own/../guarded/x',
    '/open/..%2fservices/guarded/x',
    '/open/%2e%2e/services/guarded/x',
    '/open/..;/services/guarded/x',
    '/open\\..\\services\\guarded\\x',
    '/open//../services/guarded/x',
    '//services/guarded/x',
    '/%73ervices/%67uarded/x',
    '/services/guarded/x%23/open/',
    '/services/guarded/x?y=/open/',
    '/services/guarded/%00',
    'http://hub.test/services/guarded/x',
    '/services/guarded/x#/open/',
  ])('rows 9 to 13: %s is not open to a stranger', async (target) => {
    const { status, seen } = await ask(`GET ${target}`);
    expect(seen.filter(({ url }) => !url.startsWith('/open/'))).toEqual([]);
    expect(seen.filter(({ url }) => /guarded/.test(decodeURIComponent(url)))).toEqual([]);
    expect([302, 400, 401, 404]).toContain(status);
  });

  test.for(['GoogleHC/1.0', 'kube-probe/1.30', 'ELB-HealthChecker/2.0', 'hub-readiness-probe'])(
    'row 8: the user agent %s opens nothing',
    async (agent) => {
      const { status, seen } = await ask('GET /services/guarded/', [`User-Agent: ${agent}`]);
      expect([status, seen]).toEqual([302, []]);
    },
  );

  test('row 14: names of object members are paths like any other, never 500', async () => {
    for (const path of [
      '/__proto__/x',
      '/constructor',
      '/services/__proto__/',
      '/services/constructor/x',
      '/user/__proto__/',
      '/hub/__proto__',
      '/hub/api/users/__proto__',
      '/hub/static/__proto__',
      '/%E0%A4%A',
      '/hub/%E0%A4%A',
      '/hub/api/users/%E0%A4%A',
    ]) {
      for (const cookies of [[], [`Cookie: ${hubCookie}`]]) {
        const { status } = await ask(`GET ${path}`, [...cookies, 'Accept: text/html']);
        expect([path, status]).not.toEqual([path, 500]);
        expect(status, path).toBeLessThan(500);
      }
    }
  });

  test.for(['HUB.TEST', 'hub.test.', 'hub.test:8000', 'evil.example'])(
    'row 16: the Host %s changes no decision',
    async (host) => {
      const outsider = await ask('GET /services/guarded/x', [`Host: ${host}`]);
      expect([outsider.status, outsider.seen]).toEqual([302, []]);
      const known = await ask('GET /services/guarded/x', [`Host: ${host}`, `Cookie: ${appCookie}`]);
      expect([known.status, known.seen.length]).toEqual([200, 1]);
    },
  );
});

describe('Host and forwarding headers', () => {
  test.for([
    'Host: evil.example',
    'Host: evil.example:x@hub.test',
    'Host: hub.test@evil.example',
    'Host: evil.example#hub.test',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: javascript',
    'Forwarded: host=evil.example;proto=https',
    'X-Original-Host: evil.example',
  ])('rows 17 and 36: %s never reaches a redirect or a page', async (line) => {
    for (const path of [
      '/',
      '/hub',
      '/hub/',
      '/hub/home',
      '/hub/login',
      '/services/guarded',
      '/services/guarded/x',
      '/services/own',
      '/open',
      '/user/alice/',
      '/hub/nothing-here',
      '/.well-known/oauth-authorization-server',
      '/hub/api/oauth2/authorize?client_id=service-own&response_type=code&redirect_uri=/services/own/oauth_callback',
    ]) {
      for (const cookies of [[], [`Cookie: ${hubCookie}`]]) {
        const { answer } = await ask(`GET ${path}`, [line, 'Accept: text/html', ...cookies]);
        expect(statusOf(answer), path).toBeLessThan(500);
        expect(answer, path).not.toContain('evil.example');
      }
    }
  });

  test('row 18: headers of any size and shape are read', async () => {
    for (const name of [
      'X-Forwarded-Proto',
      'X-Forwarded-Host',
      'Accept',
      'Accept-Language',
      'Cookie',
    ]) {
      for (const piece of [',', ', ', ';', ' ', 'a,', '\t', 'text/html;q=0,', '=;']) {
        const value = piece.repeat(Math.floor(15_000 / piece.length));
        const { status } = await ask('GET /hub/login', [`${name}: ${value}x`]);
        expect(status, `${name} of ${piece}`).toBe(200);
      }
    }
  });

  test('row 18: 60 KB of them are 431', async () => {
    const { status } = await ask('GET /hub/login', [`X-Forwarded-Host: ${'a,'.repeat(30_000)}`]);
    expect(status).toBe(431);
  });

  test('row 19: Referer is no way to lead a browser away', async () => {
    for (const referer of ['http://evil.example/', 'javascript:alert(1)', '//evil.example']) {
      for (const path of ['/hub/login', '/hub/logout', '/hub/nothing', '/hub/home']) {
        const { answer } = await ask(`GET ${path}`, [`Referer: ${referer}`, 'Accept: text/html']);
        expect(answer).not.toMatch(/evil\.example|javascript:/);
      }
    }
  });

  test('row 28: a path in an error page is escaped, and the page may run nothing', async () => {
    for (const path of [
      '/hub/%3Cscript%3Ealert(1)%3C/script%3E',
      '/services/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E/',
      '/user/%3Cscript%3Ealert(1)%3C/script%3E/',
      '/hub/error/%3Cscript%3E',
      '/hub/login?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
      '/hub/oauth_callback?error=%3Cscript%3Ealert(1)%3C/script%3E',
    ]) {
      const { answer } = await ask(`GET ${path}`, ['Accept: text/html', `Cookie: ${hubCookie}`]);
      expect(answer).not.toMatch(/<script>alert|<img src=x/i);
      if (!answer.includes('text/html')) continue;
      expect(headerOf(answer, 'content-security-policy')).toMatch(/default-src 'none'/);
      expect(headerOf(answer, 'x-content-type-options')).toBe('nosniff');
    }
  });
});

describe('requests that another site makes a browser send', () => {
  test('row 21: a form without its token is refused, whatever the browser says of its mode', async () => {
    const form = ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 3'];
    for (const mode of ['no-cors', 'navigate', 'cors', 'same-origin']) {
      for (const path of ['/hub/login', '/hub/logout', '/hub/token', '/hub/spawn/alice']) {
        const { status } = await ask(
          `POST ${path}`,
          [...form, `Sec-Fetch-Mode: ${mode}`, `Cookie: ${hubCookie}`],
          'a=b',
        );
        expect([path, status]).toEqual([path, 403]);
      }
    }
  });

  test('row 21: the API takes no change by cookie without the token', async () => {
    for (const headers of [
      ['Sec-Fetch-Site: cross-site'],
      ['Sec-Fetch-Site: same-site'],
      ['Origin: http://evil.example'],
      ['Origin: null'],
      [],
    ]) {
      const { status } = await ask(
        'POST /hub/api/users/alice/tokens',
        [...headers, `Cookie: ${hubCookie}`, 'Content-Type: application/json', 'Content-Length: 2'],
        '{}',
      );
      expect(status).toBe(403);
    }
  });

  test.for(['http://evil.example', 'null', 'http://hub.test.evil.example', 'file://', ''])(
    'row 27: a WebSocket with a valid cookie from the origin %s is 403',
    async (foreign) => {
      hub.seen.length = 0;
      const answer = await answerTo(
        hub,
        handshakeOf('/services/guarded/socket', [`Cookie: ${appCookie}`, `Origin: ${foreign}`]),
      );
      expect(statusOf(answer)).toBe(403);
      expect(hub.seen).toEqual([]);
    },
  );

  test('row 27: a WebSocket of its own pages passes', async () => {
    hub.seen.length = 0;
    await answerTo(
      hub,
      handshakeOf('/services/guarded/socket', [`Cookie: ${appCookie}`, `Origin: ${origin}`]),
    );
    expect(hub.seen.map(({ method }) => method)).toEqual(['UPGRADE']);
  });

  test('row 26: a WebSocket without a login, or with a wrong one, is 401 and reaches no application', async () => {
    const forged = appCookie.replace(/(?<=service-guarded=.{8})./, (character) =>
      character === '_' ? '-' : '_',
    );
    expect(forged).not.toBe(appCookie);
    for (const headers of [
      [],
      [`Cookie: ${forged}`],
      ['Authorization: token nonsense'],
      [`Cookie: hub-hub-login=${alice.cookie('hub-hub-login')?.value}`],
    ]) {
      for (const path of ['/services/guarded/', '/services/guarded/deep/er?x=1']) {
        hub.seen.length = 0;
        const answer = await answerTo(hub, handshakeOf(path, [...headers, `Origin: ${origin}`]));
        expect(statusOf(answer)).toBe(401);
        expect(hub.seen).toEqual([]);
      }
    }
  });

  test('row 51: a page that made its name the address of the hub gets nothing done', async () => {
    // Its browser sends no cookies of the hub there; all it has is that the request arrives.
    const rebound = ['Host: evil.example', 'Origin: http://evil.example'];
    for (const [method, path] of [
      ['GET', '/hub/api/users'],
      ['POST', '/hub/api/users/eve'],
      ['DELETE', '/hub/api/users/alice'],
      ['GET', '/hub/api/user'],
      ['GET', '/hub/metrics'],
    ]) {
      for (const port of [hub.port, Number(new URL(hub.hub.apiUrl).port)]) {
        const answer = await answerTo({ port }, bytesOf(`${method} ${path}`, rebound));
        expect([path, [401, 403].includes(statusOf(answer))]).toEqual([path, true]);
        expect(answer).not.toMatch(/access-control-allow-origin/i);
      }
    }
  });
});

describe('cookies', () => {
  test('row 22: a session or form cookie tossed in by another site never counts', async () => {
    const mallory = await hub.hub.logIn('mallory');
    const theirs = mallory.cookie('hub-hub-login')?.value;
    const ours = alice.cookie('hub-hub-login')?.value;
    for (const cookie of [
      `hub-hub-login=${theirs}; hub-hub-login=${ours}`,
      `hub-hub-login=${ours}; hub-hub-login=${theirs}`,
    ]) {
      const { answer } = await ask('GET /hub/home', [`Cookie: ${cookie}`, 'Accept: text/html']);
      expect(statusOf(answer)).toBe(302);
      expect(headerOf(answer, 'location')).toMatch(/^\/hub\/login/);
    }
    const guarded = mallory.cookieHeader(`${hub.url}services/guarded/`);
    expect(guarded).not.toContain('service-guarded=');
  });

  test('row 22: two token cookies of different people admit neither', async () => {
    const mallory = await hub.visitor('mallory');
    const [theirs, ours] = [mallory, alice].map(
      (browser) => browser.cookie('service-guarded')?.value ?? '',
    );
    expect(theirs).not.toBe(ours);
    const { seen } = await ask('GET /services/guarded/x', [
      `Cookie: service-guarded=${theirs}; service-guarded=${ours}`,
    ]);
    expect(seen).toEqual([]);
  });

  test('row 23: a form cookie tossed in neither helps an attacker nor stops a login', async () => {
    const browser = new FakeBrowser();
    const page = await browser.request(`${hub.url}hub/login`);
    const name = browser.cookieNames().find((candidate) => candidate === 'hub-form') ?? '';
    const own = browser.cookie(name)?.value ?? '';
    const planted = 'A'.repeat(43);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(page.body)?.[1] ?? '';
    const form = new URLSearchParams({
      _csrf: csrf,
      authenticator: 'dummy',
      username: 'bob',
      password: 'test',
    }).toString();
    const post = (cookie: string, body: string) =>
      ask(
        'POST /hub/login',
        [
          `Cookie: ${cookie}`,
          'Content-Type: application/x-www-form-urlencoded',
          `Content-Length: ${body.length}`,
        ],
        body,
      );
    for (const cookie of [
      `${name}=${planted}; ${name}=${own}`,
      `${name}=${own}; ${name}=${planted}`,
    ]) {
      expect((await post(cookie, form)).status).toBe(302);
    }
    const forged = form.replace(encodeURIComponent(csrf), encodeURIComponent(planted));
    expect((await post(`${name}=${planted}`, forged)).status).toBe(403);
    expect((await post(`${name}=${planted}`, form)).status).toBe(403);
  });

  test('row 24: the id of a session changes at login, and the one before is worth nothing', async () => {
    const browser = new FakeBrowser();
    const first = await submitLogin(browser, hub.url, 'carol', 'test');
    expect(first.status).toBe(302);
    const planted = browser.cookieHeader(`${hub.url}hub/`);
    const again = await browser.request(`${hub.url}hub/logout`);
    expect(again.status).toBe(200);
    const victim = new FakeBrowser();
    for (const pair of planted.split('; ')) {
      victim.setCookie(
        pair.slice(0, pair.indexOf('=')),
        pair.slice(pair.indexOf('=') + 1),
        '/hub/',
      );
    }
    await submitLogin(victim, hub.url, 'dora', 'test');
    const { status } = await ask('GET /hub/home', [`Cookie: ${planted}`, 'Accept: text/html']);
    expect(status).toBe(302);
  });

  test('row 25: a logout ends every tab and the token of every application', async () => {
    const browser = await hub.visitor('erin');
    const tab = browser.cookieHeader(`${hub.url}services/guarded/`);
    const home = browser.cookieHeader(`${hub.url}hub/`);
    expect((await ask('GET /services/guarded/x', [`Cookie: ${tab}`])).status).toBe(200);
    await browser.request(`${hub.url}hub/logout`);
    const after = await ask('GET /services/guarded/x', [`Cookie: ${tab}`]);
    expect([after.status, after.seen]).toEqual([302, []]);
    const { answer } = await ask('GET /hub/home', [`Cookie: ${home}`, 'Accept: text/html']);
    expect(statusOf(answer)).toBe(302);
  });

  test('row 52: the oddest Cookie headers are read the same way every time, and none is passed on', async () => {
    const value = alice.cookie('service-guarded')?.value ?? '';
    for (const cookie of [
      `service-guarded="${value}"`,
      `$Version=1; service-guarded=${value}; $Path=/`,
      `  service-guarded = ${value} ; ;; =; a`,
      `a="x; service-guarded=${value}"`,
      `service-guarded=${value}; service-guarded=${value}`,
      `SERVICE-GUARDED=${value}`,
      `service-guarded%3d=${value}`,
      `a=${'x'.repeat(10_000)}; service-guarded=${value}`,
    ]) {
      const first = await ask('GET /services/guarded/x', [`Cookie: ${cookie}`]);
      const second = await ask('GET /services/guarded/x', [`Cookie: ${cookie}`]);
      expect([200, 302]).toContain(first.status);
      expect(second.status).toBe(first.status);
      expect(JSON.stringify(first.seen)).not.toContain(value);
    }
  });
});

describe('users share connections to an application, and nothing else', () => {
  test('row 54: an answer is of the user who asked, also when another one breaks off', async () => {
    const bob = await hub.visitor('bob');
    const bobCookie = bob.cookieHeader(`${hub.url}services/guarded/`);
    for (let round = 0; round < 20; round++) {
      const first = await attack(
        hub,
        bytesOf(
          'POST /services/guarded/alices',
          [`Cookie: ${appCookie}`, `Origin: ${origin}`, 'Content-Length: 1000'],
          'begun',
        ),
      );
      const [second] = await Promise.all([
        ask(`GET /services/guarded/bobs-${round}`, [`Cookie: ${bobCookie}`]),
        new Promise<void>((resolve) => {
          setImmediate(() => {
            first.socket.destroy();
            resolve();
          });
        }),
      ]);
      expect(second.answer).toContain(`guarded /services/guarded/bobs-${round}`);
      expect(second.answer).not.toContain('alices');
    }
  });

  test('row 54: a hundred requests of two users at once each get their own answer', async () => {
    const bob = await hub.visitor('bob');
    const cookies = { alice: appCookie, bob: bob.cookieHeader(`${hub.url}services/guarded/`) };
    hub.seen.length = 0;
    const names = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 'alice' : 'bob'));
    const answers = await Promise.all(
      names.map((name, index) =>
        answerTo(
          hub,
          bytesOf(`GET /services/guarded/${name}-${index}`, [
            `Cookie: ${cookies[name as 'alice' | 'bob']}`,
          ]),
        ),
      ),
    );
    for (const [index, name] of names.entries())
      expect(answers[index]).toContain(`${name}-${index}`);
    for (const { url, headers } of hub.seen) expect(url).toContain(`/${headers['x-hub-user']}-`);
  });
});

describe('what is too much', () => {
  test('row 38: a user name of 10 MB is refused before anything is done with it', async () => {
    const browser = new FakeBrowser();
    const page = await browser.request(`${hub.url}hub/login`);
    const form = ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 10000009'];
    const body = `username=${'x'.repeat(10_000_000)}`;
    expect((await ask('POST /hub/login', form, body)).status).toBe(413);
    const long = { username: 'x'.repeat(100_000), password: 'test' };
    const refused = await submitForm(browser, page, long);
    expect([400, 401, 403]).toContain(refused.status);
    for (const line of hub.hub.logLines) expect(JSON.stringify(line).length).toBeLessThan(20_000);
  });

  test('a body that says it is compressed is never unpacked', async () => {
    for (const encoding of ['gzip', 'br', 'deflate', 'gzip, gzip, gzip']) {
      const { status } = await ask(
        'POST /hub/api/users',
        [
          `Content-Encoding: ${encoding}`,
          'Authorization: token admin-service-token',
          'Content-Type: application/json',
          'Content-Length: 4',
        ],
        '\x1f\x8b\x08\x00',
      );
      expect(status).toBe(400);
    }
    const { seen } = await ask(
      'POST /open/x',
      ['Content-Encoding: gzip', 'Content-Length: 4'],
      '\x1f\x8b\x08\x00',
    );
    expect(seen[0]?.body).toBe('\x1f\x8b\x08\x00');
    expect(await isHealthy(hub.hub)).toBe(true);
  });
});
