import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attackerHost, openRedirectVectors } from '../../fixtures/attacks/open-redirects.ts';
import { safeRedirectTarget } from '../../src/platform/http/redirect-target.ts';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins } from '../support/login-age.ts';
import { submitMain } from '../support/pages.ts';
import { submitForm } from '../support/test-hub.ts';
import { type AttackedHub, answerTo, bytesOf, startAttackedHub } from './hub-harness.ts';

let hub: AttackedHub;
let vectors: readonly string[];

beforeAll(async () => {
  hub = await startAttackedHub({
    Authenticator: { lockout_attempts: 100_000 },
    Spawner: { cmd: ['true'] },
  });
  // Every vector is tried on the function that decides; over HTTP, where that takes time, a part.
  vectors = openRedirectVectors(new URL(hub.url).host);
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** Whether a browser that follows a Location stays, whichever way it reads it. */
function staysHere(location: string | undefined): boolean {
  const here = new URL(`${hub.url}hub/login`);
  if (location === undefined || URL.parse(location, here.href)?.origin !== here.origin)
    return false;
  const path = location.startsWith(`${here.origin}/`)
    ? location.slice(here.origin.length)
    : location;
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(path);
}

/** Every value that a page holds as an address or hands on in a form. */
function addressesIn(page: string): string[] {
  return [...page.matchAll(/(?:href|action|value|content)="([^"]*)"/g)].map(
    ([, value = '']) => value,
  );
}

describe('row 20: open redirects', () => {
  test('there are more than 1,000 vectors of our own', () => {
    expect(new Set(vectors).size).toBeGreaterThan(1_000);
  });

  test('what is accepted as next stays at the hub, in every reading', () => {
    const publicUrl = new URL(hub.url);
    for (const vector of vectors) {
      for (const next of [vector, encodeURIComponent(vector), tryDecode(vector)]) {
        const target = safeRedirectTarget(next, publicUrl);
        if (target !== undefined) expect(staysHere(target), JSON.stringify(next)).toBe(true);
      }
    }
  });

  test.for(['next=', 'x=1&next=', 'next=/hub/home&next='])(
    'a browser that is logged in stays at the hub with /hub/login?%s',
    async (query) => {
      const browser = await hub.hub.logIn('alice');
      const step = query === 'next=' ? 3 : 20;
      const some = vectors.filter((_, index) => index % step === 0);
      for (const vector of some) {
        const url = `${hub.url}hub/login?${query}${encodeURIComponent(vector)}`;
        const { status, headers } = await browser.request(url);
        expect(status, vector).toBe(302);
        expect(staysHere(headers.location), `${vector} led to ${headers.location}`).toBe(true);
      }
    },
  );

  test('a login form hands on no address of another site, nor leads there', async () => {
    const browser = new FakeBrowser();
    const page = await browser.request(`${hub.url}hub/login`);
    for (const [index, vector] of vectors.entries()) {
      if (index % 12 === 0) {
        const { body } = await browser.request(
          `${hub.url}hub/login?next=${encodeURIComponent(vector)}`,
        );
        const leading = addressesIn(body).filter((value) => /^[^/]*:|^[/\\]{2}/.test(value));
        expect(
          leading.filter((value) => value.includes(attackerHost)),
          vector,
        ).toEqual([]);
        expect(body).not.toMatch(/<script>alert|["']onmouseover=/);
      }
      if (index % 24 !== 0) continue;
      const visitor = new FakeBrowser();
      for (const name of browser.cookieNames()) {
        visitor.setCookie(name, browser.cookie(name)?.value ?? '', '/hub/');
      }
      const values = { username: `user-${index}`, password: 'test', next: vector };
      const { status, headers } = await submitForm(visitor, page, values);
      expect(status, vector).toBe(302);
      expect(staysHere(headers.location), `${vector} led to ${headers.location}`).toBe(true);
    }
  });

  test('a confirmed login leads nowhere else, nor does the page that asks for it', async () => {
    const browser = await hub.hub.logIn('carol');
    await ageLogins(hub.hub);
    const some = vectors.filter((_, index) => index % 24 === 0);
    const page = await browser.request(`${hub.url}hub/confirm-login`);
    for (const vector of some) {
      const url = `${hub.url}hub/confirm-login?next=${encodeURIComponent(vector)}`;
      // What no header can hold is no address to come from either.
      const headers = /^[\x21-\x7e]+$/.test(vector) ? { referer: vector } : {};
      const { status, body } = await browser.request(url, { headers });
      expect(status, vector).toBe(200);
      const leading = addressesIn(body).filter((value) => /^[^/]*:|^[/\\]{2}/.test(value));
      expect(
        leading.filter((value) => value.includes(attackerHost)),
        vector,
      ).toEqual([]);
    }
    for (const vector of some) {
      const values = { username: 'carol', password: 'test', next: vector };
      const { status, headers } = await submitMain(browser, page, values);
      expect(status, vector).toBe(303);
      expect(staysHere(headers.location), `${vector} led to ${headers.location}`).toBe(true);
      const again = await browser.request(
        `${hub.url}hub/confirm-login?next=${encodeURIComponent(vector)}`,
      );
      expect(staysHere(again.headers.location), vector).toBe(true);
    }
  });

  test('no code and nobody who logs out goes to a trick in place of the address of an app', async () => {
    const browser = await hub.hub.logIn('alice');
    const registered = `${hub.url}services/guarded/oauth_callback`;
    const ask = async (path: string, parameters: Record<string, string>) => {
      const query = new URLSearchParams({ client_id: 'service-guarded', ...parameters });
      const answer = await browser.request(`${hub.url}hub/${path}?${query}`);
      return { ...answer, leadsTo: answer.headers.location ?? answer.headers['refresh'] };
    };
    const code = (redirect_uri: string) =>
      ask('api/oauth2/authorize', { response_type: 'code', redirect_uri });
    expect((await code(registered)).leadsTo).toMatch(/oauth_callback\?code=/);
    const host = new URL(hub.url).host;
    const alike = [
      ...['/', '/..', '/../x', '?', '?x', '#', '#x', ';x', '%00', '%2f', '\t', ' ', '.', '\\'].map(
        (end) => registered + end,
      ),
      registered.toUpperCase(),
      registered.replace('http:', 'https:'),
      registered.replace('oauth_callback', './oauth_callback'),
      registered.replace('oauth_callback', '%6fauth_callback'),
      registered.replace(host, `${host}.${attackerHost}`),
      registered.replace(host, `${host}@${attackerHost}`),
      registered.replace(host, `user@${host}`),
      'javascript:alert(1)',
    ];
    const tricks = vectors.filter((_, index) => index % 4 === 0);
    for (const uri of [...alike, ...tricks, ...tricks.map((trick) => registered + trick)]) {
      // Without a value it is left out.
      if (uri === '') continue;
      const { status, leadsTo } = await code(uri);
      expect([status, leadsTo], uri).toEqual([400, undefined]);
    }
    for (const uri of [registered, ...alike, ...tricks]) {
      const { status, leadsTo } = await ask('logout', { post_logout_redirect_uri: uri });
      expect([status, leadsTo], uri).toEqual([uri === '' ? 200 : 400, undefined]);
    }
  });

  test('the start page of a server hands on no address of another site', async () => {
    const browser = await hub.hub.logIn('alice');
    for (const [index, vector] of vectors.entries()) {
      if (index % 24 !== 0) continue;
      for (const page of ['spawn/alice', 'spawn-pending/alice']) {
        const { headers, body } = await browser.request(
          `${hub.url}hub/${page}?next=${encodeURIComponent(vector)}`,
        );
        if (headers.location !== undefined) expect(staysHere(headers.location), vector).toBe(true);
        const leading = addressesIn(body).filter((value) => /^[^/]*:|^[/\\]{2}/.test(value));
        expect(
          leading.filter((value) => value.includes(attackerHost)),
          vector,
        ).toEqual([]);
      }
    }
  });

  test('a request target that is a trick leads nowhere else', async () => {
    for (const [index, vector] of vectors.entries()) {
      // What does not fit into a request line cannot be asked for.
      if (!/^\/[\x21-\x7e]*$/.test(vector) || vector.length > 8_000) continue;
      const prefixes = ['', '/hub', '/services/guarded', '/services/own', '/open', '/user'];
      for (const prefix of [prefixes[index % prefixes.length] ?? '', '/hub']) {
        const answer = await answerTo(
          hub,
          bytesOf(`GET ${prefix}${vector}`, ['Accept: text/html', `Host: ${attackerHost}`]),
        );
        const location = /\r\nlocation: ([^\r\n]*)/i.exec(answer)?.[1];
        if (location === undefined) continue;
        expect(staysHere(location), `${prefix}${vector} led to ${location}`).toBe(true);
      }
    }
  });

  test.skipIf(!hasChromium())(
    'a real browser stays at the hub wherever a login leads',
    async () => {
      const browser = await hub.hub.logIn('alice');
      const locations = new Set<string>();
      for (const vector of vectors.filter((_, index) => index % 5 === 1)) {
        const url = `${hub.url}hub/login?next=${encodeURIComponent(vector)}`;
        const { headers } = await browser.request(url);
        locations.add(headers.location ?? '');
      }
      await using chromium = await startChromium();
      const page = await chromium.newPage();
      await page.goto(`${hub.url}hub/login`);
      const origins = await page.evaluate(
        ([base, ...list]) => list.map((location) => new URL(location, base).origin),
        [page.url(), ...locations],
      );
      expect(new Set(origins)).toEqual(new Set([new URL(hub.url).origin]));
    },
  );
});

function tryDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
