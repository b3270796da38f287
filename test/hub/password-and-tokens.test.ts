import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, inviteUser, testPassword } from '../support/password-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

// Who knew the old password may have made tokens with it, which a new one does not end by itself.
let hub: TestHub;
const names = ['ada', 'bob', 'carol', 'dave'] as const;
beforeAll(async () => {
  hub = await createPasswordHub(names);
});
afterAll(() => hub[Symbol.asyncDispose]());

const newPassword = 'quiet morning rivers';
const chosen = { new_password: newPassword, repeat_password: newPassword };

async function makeTokens(name: string, count: number): Promise<string[]> {
  const tokens: string[] = [];
  for (let made = 0; made < count; made += 1) {
    const path = `/users/${name}/tokens`;
    const answer = await hub.api(path, 'admin-service-token', { method: 'POST', body: '{}' });
    tokens.push(((await answer.json()) as { token: string }).token);
  }
  return tokens;
}

const statusesOf = (tokens: readonly string[]) =>
  Promise.all(tokens.map(async (token) => (await hub.api('/user', token)).status));

/** Whether a page offers to end that many tokens, and does so unless it is told otherwise. */
function expectOffer(body: string, label: string): void {
  expect(body).toContain(label);
  expect(body).toMatch(/name="end_api_tokens" value="true" checked/);
}

test('a change of the password offers to end the API tokens, and says how many there are', async () => {
  const browser = await hub.logIn('bob', testPassword);
  expect((await browser.request(`${hub.url}hub/account`)).body).not.toContain('end_api_tokens');
  const tokens = await makeTokens('bob', 3);
  expect(await statusesOf(tokens)).toEqual([200, 200, 200]);
  const page = await browser.request(`${hub.url}hub/account`);
  expectOffer(page.body, 'End your 3 API tokens too');
  const kept = await submitTo(browser, page, '/hub/account/password', {
    current_password: 'wrong',
    ...chosen,
  });
  expect(kept.body).not.toMatch(/name="end_api_tokens" value="true" checked/);
  const changed = await submitTo(browser, page, '/hub/account/password', {
    current_password: testPassword,
    ...chosen,
    end_api_tokens: 'true',
  });
  expect(changed.status).toBe(303);
  expect(await statusesOf(tokens)).toEqual([403, 403, 403]);
  expect((await browser.request(`${hub.url}hub/account`)).body).toContain(
    'You are logged out everywhere else, and your API tokens have ended.',
  );
});

test('without the tick the tokens stay', async () => {
  const browser = await hub.logIn('carol', testPassword);
  const tokens = await makeTokens('carol', 1);
  const page = await browser.request(`${hub.url}hub/account`);
  expectOffer(page.body, 'End your API token too');
  const answer = await submitTo(browser, page, '/hub/account/password', {
    current_password: testPassword,
    ...chosen,
  });
  expect(answer.status).toBe(303);
  expect(await statusesOf(tokens)).toEqual([200]);
});

test.each([
  ['reset', 'dave', 2, 'End your 2 API tokens too'],
  ['invitation', 'erin', 1, 'End your API token too'],
])('a %s link offers it as well', async (purpose, name, count, label) => {
  const { url } = await inviteUser(hub, name);
  const tokens = await makeTokens(name, count);
  const browser = new FakeBrowser();
  const page = await browser.request(url);
  expect(page.body).toContain(purpose === 'reset' ? 'Choose a new password' : 'Welcome');
  expectOffer(page.body, label);
  const answer = await submitTo(browser, page, '/hub/invitation', {
    ...chosen,
    end_api_tokens: 'true',
  });
  expect(answer.status).toBe(303);
  expect(await statusesOf(tokens)).toEqual(tokens.map(() => 403));
});

test('what is revoked on the last page of a list leads back there', async () => {
  await makeTokens('ada', 22);
  const browser = await hub.logIn('ada', testPassword);
  const page = await browser.request(`${hub.url}hub/account?before=`);
  expect(page.body).toContain('10 of 22');
  const revoked = await submitTo(browser, page, '/hub/token/revoke', {});
  expect([revoked.status, revoked.headers.location]).toEqual([303, '/hub/account?before=#tokens']);
  const shown = await browser.follow(revoked);
  expect(shown.body).toContain('The token is revoked.');
  expect(shown.body).toContain('10 of 21');
});
