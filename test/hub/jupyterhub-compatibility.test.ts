import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { managedService, openWithConsent, untilState } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

const app = 'fixtures/apps/gateway-app.cjs';
const accesses = ['gateway', 'public', 'service'] as const;
let hub: TestHub;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      environment_prefixes: ['HUB', 'JUPYTERHUB'],
      load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      services: await Promise.all(
        accesses.map((access) => managedService(`is-${access}`, app, { access })),
      ),
    },
  });
  for (const access of accesses) await untilState(hub, `is-${access}`, 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

describe('the cookie jupyterhub-session-id', () => {
  test.each([
    ['gateway', false],
    ['public', false],
    ['service', true],
  ] as const)(
    'where access is %s reaches the app as hub-session-id does',
    async (access, isSeen) => {
      const browser = await hub.logIn('ada');
      const page = await openWithConsent(browser, `${hub.url}services/is-${access}/`);
      expect(page.status).toBe(200);
      const { headers } = JSON.parse(page.body) as { headers: Record<string, string> };
      const names = (headers['cookie'] ?? '').split('; ').map((pair) => pair.split('=')[0]);
      expect(names.includes('hub-session-id')).toBe(isSeen);
      expect(names.includes('jupyterhub-session-id')).toBe(isSeen);
    },
  );

  test.each(accesses)('is not for an app to set where access is %s', async (access) => {
    const browser = await hub.logIn('ada');
    const url = `${hub.url}services/is-${access}/`;
    await openWithConsent(browser, url);
    const answer = await browser.request(`${url}set-cookie?name=jupyterhub-session-id&name=theme`);
    expect(answer.status).toBe(200);
    const set = (answer.headers['set-cookie'] ?? []).map((line) => line.split('=')[0]);
    expect(set).toEqual(['theme']);
  });

  test('comes back when a browser has lost it, and goes at logout', async () => {
    const browser = await hub.logIn('ada');
    const sessionId = browser.cookie('hub-session-id')?.value;
    browser.setCookie('jupyterhub-session-id', 'another');
    await browser.request(`${hub.url}hub/home`);
    expect(browser.cookie('jupyterhub-session-id')?.value).toBe(sessionId);
    await browser.request(`${hub.url}hub/logout`);
    expect(browser.cookieNames()).not.toContain('jupyterhub-session-id');
  });
});
