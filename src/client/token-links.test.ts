import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type BrowserAnswer, FakeBrowser } from '../../test/support/fake-browser.ts';
import {
  bob,
  type GuardedService,
  startGuardedService,
} from '../../test/support/guarded-service.ts';
import { submitForm } from '../../test/support/test-hub.ts';

describe('a token in the URL', () => {
  const linkTo = (parts: GuardedService, token: string) => `${parts.prefix}page?a=1&token=${token}`;

  /** Follows a link with a token to the page that asks; the address of that page names no token. */
  async function openLink(parts: GuardedService, token: string): Promise<BrowserAnswer> {
    const asked = await parts.browser.open(linkTo(parts, token));
    expect(asked.status).toBe(200);
    expect(asked.body).toContain('Continue as bob?');
    expect(`${asked.url} ${asked.body}`).not.toContain(token);
    return asked;
  }

  test('of a page asks before it becomes a cookie, and leaves the address', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const asked = await openLink(parts, 'given');
    expect(parts.browser.cookieNames()).not.toContain('service-x');
    expect(asked.headers).toMatchObject({
      'cross-origin-opener-policy': 'same-origin',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
    });
    const answer = await submitForm(parts.browser, asked, {});
    expect([answer.status, answer.headers.location]).toEqual([302, '/services/x/page?a=1']);
    expect((await parts.browser.open(`${parts.prefix}page`)).body).toBe('bob at /services/x/page');
    // The question is over, and cannot be answered twice.
    expect((await parts.browser.request(asked.url)).status).toBe(403);
  });

  test('of a page may be left for a login of one’s own', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const asked = await openLink(parts, 'given');
    const own = /href="([^"]*)"/.exec(asked.body)?.[1] ?? '';
    const page = await parts.browser.open(new URL(own.replaceAll('&amp;', '&'), asked.url).href);
    expect(page.body).toBe('alice at /services/x/page?a=1');
  });

  test.each(['none', 'same-origin', 'same-site', 'cross-site', undefined])(
    'never replaces the login of another user, when Sec-Fetch-Site is %s',
    async (site) => {
      await using parts = await startGuardedService();
      await parts.browser.open(parts.prefix);
      parts.hub.users.set('given', bob);
      const answer = await parts.browser.request(linkTo(parts, 'given'), {
        headers: site === undefined ? {} : { 'sec-fetch-site': site },
      });
      expect(answer.headers.location).toBe('/services/x/page?a=1');
      expect(answer.headers['set-cookie']).toBeUndefined();
      expect((await parts.browser.open(linkTo(parts, 'given'))).body).toBe(
        'alice at /services/x/page?a=1',
      );
    },
  );

  test('of a browser on plain http, which says nothing of itself, is not taken unasked either', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const outgoing = request(linkTo(parts, 'given'), { headers: { accept: 'text/html' } }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.headers.location).toMatch(/^\/services\/x\/oauth_callback\?link=/);
    expect(response.headers['set-cookie']?.join()).not.toContain('service-x=');
  });

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['a sibling of the host', { 'sec-fetch-site': 'same-site' }],
    ['another site of an old browser', { origin: 'https://evil.example' }],
  ])('is not answered for the visitor by %s', async (_name, headers) => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const { url } = await openLink(parts, 'given');
    const answer = await parts.browser.request(url, { method: 'POST', headers });
    expect(answer.status).toBe(403);
    expect(parts.browser.cookieNames()).not.toContain('service-x');
  });

  test('is answered in the browser that followed the link only, and while its token is good', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const { url } = await openLink(parts, 'given');
    expect((await new FakeBrowser().request(url)).status).toBe(403);
    expect((await new FakeBrowser().request(url, { method: 'POST' })).status).toBe(403);
    parts.hub.users.delete('given');
    parts.restart();
    expect((await parts.browser.request(url)).status).toBe(403);
    expect((await parts.browser.request(url, { method: 'POST' })).status).toBe(403);
    expect(parts.browser.cookieNames()).not.toContain('service-x');
  });

  test('of a user without access is refused at once', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', { ...bob, scopes: [] });
    expect((await parts.browser.request(linkTo(parts, 'given'))).status).toBe(403);
  });

  test('of a program is used at once', async () => {
    await using parts = await startGuardedService();
    parts.hub.users.set('given', bob);
    const answer = await fetch(`${parts.prefix}api?token=given`);
    expect(await answer.text()).toBe('bob at /services/x/api');
    expect(answer.headers.getSetCookie()).toEqual([]);
  });
});
