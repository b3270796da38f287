import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createTestHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

test.each([
  ['503', 'What you asked for does not answer.'],
  ['504', 'load the page again'],
  ['404', 'There is no page at this address.'],
  ['418', 'answered with this error'],
])('a proxy in front of the hub finds a page for its error %s', async (code, text) => {
  const answer = await new FakeBrowser().request(`${hub.url}hub/error/${code}`);
  // The proxy keeps its own status; with an error in its place, Apache would show a page of its own.
  expect(answer.status).toBe(200);
  expect(answer.headers['cache-control']).toContain('no-store');
  expect(answer.body).toContain(`Error ${code}`);
  expect(answer.body).toContain(text);
  const loggedIn = await (await hub.logIn('alice')).request(`${hub.url}hub/error/${code}`);
  expect(loggedIn.body).toContain('Go to your home page');
});

test.each(['200', '600', '5030', 'x', '<b>', ''])('there is none for %j', async (code) => {
  const url = `${hub.url}hub/error/${encodeURIComponent(code)}`;
  expect((await new FakeBrowser().request(url)).status).toBe(404);
});
