import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createOwnService } from '../support/own-service.ts';
import { untilState } from '../support/services.ts';
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

test('after a reload the pages tell the password length that is in force', async () => {
  const withLength = (min_length: number) => ({
    Hub: { authenticator_class: 'password' },
    PasswordAuthenticator: { min_length },
  });
  await using hub = await createTestHub(withLength(14));
  const setUpPage = async () => (await new FakeBrowser().open(hub.hub.setUpUrl ?? '')).body;
  expect(await setUpPage()).toContain('At least 14 characters');
  await hub.reload(withLength(20));
  expect(await setUpPage()).toContain('At least 20 characters');
});

test('a reload takes groups and roles over, and the log says what it changed', async () => {
  await using hub = await createTestHub();
  const before = await hub.api('/groups/crew', 'admin-service-token');
  expect(before.status).toBe(404);

  await hub.reload({
    Hub: {
      load_groups: [{ name: 'crew', users: ['ada'] }],
      services: [{ name: 'wiki', url: 'http://127.0.0.1:9', access: 'public' }],
      shutdown_timeout: 7,
    },
  });

  const after = await hub.api('/groups/crew', 'admin-service-token');
  expect(await after.json()).toMatchObject({ name: 'crew', users: ['ada'] });
  const messages = hub.logLines.map((line) => JSON.stringify(line)).join('\n');
  expect(messages).toMatch(/"added":\["wiki"\]/);
  expect(messages).toMatch(/"settings":\["Hub.shutdown_timeout"\].*need a restart/);
});

test('a guarded service asks for what the configuration in force allows it, without a restart', async () => {
  await using upstream = await createOwnService('wiki');
  const guarded = { ...upstream.config, access: 'gateway' };
  await using hub = await createTestHub({ Hub: { services: [guarded] } });
  upstream.connect(hub);
  await untilState(hub, 'wiki', 'ready');
  const requestedScopes = async () => {
    const redirect = await new FakeBrowser().request(`${hub.url}services/wiki/`);
    return new URL(redirect.headers.location ?? '', hub.url).searchParams.get('scope');
  };
  expect(await requestedScopes()).toBe('access:services!service=wiki');

  const allowed = { ...guarded, oauth_client_allowed_scopes: ['list:users'] };
  await hub.reload({ Hub: { services: [allowed] } });
  expect(await requestedScopes()).toBe('access:services!service=wiki list:users');

  await hub.reload({ Hub: { services: [guarded] } });
  expect(await requestedScopes()).toBe('access:services!service=wiki');
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
