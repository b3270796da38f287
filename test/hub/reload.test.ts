import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createTestHub, submitLogin } from '../support/test-hub.ts';

test('a reload changes who may log in and with what password, and keeps those who are logged in', async () => {
  await using hub = await createTestHub({
    Authenticator: { allow_all: false, allowed_users: ['ada'] },
  });
  const ada = await hub.logIn('ada');
  expect((await submitLogin(new FakeBrowser(), hub.url, 'grace', 'test')).status).toBe(403);

  await hub.reload({
    Authenticator: { allow_all: false, allowed_users: ['grace'] },
    DummyAuthenticator: { password: 'another' },
  });

  expect((await submitLogin(new FakeBrowser(), hub.url, 'grace', 'test')).status).toBe(401);
  expect((await submitLogin(new FakeBrowser(), hub.url, 'grace', 'another')).status).toBe(302);
  expect((await ada.request(`${hub.url}hub/home`)).status).toBe(200);
});

test('a reload takes groups and roles over, and the log says what it changed', async () => {
  await using hub = await createTestHub();
  const before = await hub.api('/groups/crew', 'admin-service-token');
  expect(before.status).toBe(404);

  await hub.reload({
    Hub: {
      load_groups: [{ name: 'crew', users: ['ada'] }],
      services: [{ name: 'wiki', url: 'http://127.0.0.1:9', access: 'public' }],
      title: 'Elsewhere',
    },
  });

  const after = await hub.api('/groups/crew', 'admin-service-token');
  expect(await after.json()).toMatchObject({ name: 'crew', users: ['ada'] });
  const messages = hub.logLines.map((line) => JSON.stringify(line)).join('\n');
  expect(messages).toMatch(/"added":\["wiki"\]/);
  expect(messages).toMatch(/"settings":\["Hub.title"\].*need a restart/);
});

test('a stop asked for over the API needs the scope shutdown and is passed on to the process', async () => {
  await using hub = await createTestHub();
  let isRequested = false;
  void hub.hub.stopRequested.then(() => {
    isRequested = true;
  });
  expect((await hub.api('/shutdown', undefined, { method: 'POST' })).status).toBe(403);
  const wrong = { method: 'POST', body: '{"servers":"yes"}' };
  expect((await hub.api('/shutdown', 'admin-service-token', wrong)).status).toBe(400);
  expect(isRequested).toBe(false);
  const answer = await hub.api('/shutdown', 'admin-service-token', { method: 'POST', body: '{}' });
  expect(answer.status).toBe(202);
  await hub.hub.stopRequested;
});
