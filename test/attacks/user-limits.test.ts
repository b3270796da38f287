import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { createServerHub, createUsers, serverPath } from '../support/server-hub.ts';
import { createTestHub, submitLogin } from '../support/test-hub.ts';

const admin = 'admin-service-token';
const atOnce = <Result>(count: number, work: (index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

test('a user makes no more tokens than allowed, also by asking for many at once', async () => {
  await using hub = await createTestHub({ Hub: { api_token_limit_per_user: 5 } });
  const browser = await hub.logIn('alice');
  const make = (body: object = {}) =>
    hub.api('/users/alice/tokens', admin, { method: 'POST', body: JSON.stringify(body) });
  const answers = await atOnce(20, () => make());
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  const refused = answers.find(({ status }) => status !== 201);
  expect(refused?.status).toBe(409);
  expect(await refused?.json()).toMatchObject({
    code: 'conflict',
    message: 'alice has 5 API tokens, the most that a user may have here.',
    hint: 'Revoke one that is no longer needed, under Tokens or with DELETE /hub/api/users/alice/tokens/ID.',
  });

  const page = await browser.request(`${hub.url}hub/account`);
  const full = await submitTo(browser, page, '/hub/token', { note: 'Nightly' });
  expect(full.status).toBe(400);
  expect(full.body).toContain('You have 5 API tokens, the most that a user may have here.');
  expect(full.body).toContain('value="Nightly"');
  const revoked = await submitTo(browser, page, '/hub/token/revoke');
  expect(revoked.status).toBe(303);
  expect((await submitTo(browser, page, '/hub/token', { note: 'Nightly' })).status).toBe(303);
  expect((await make()).status).toBe(409);
  await hub.api('/users/bob', admin, { method: 'POST', body: '{}' });
  const other = await hub.api('/users/bob/tokens', admin, { method: 'POST', body: '{}' });
  expect(other.status).toBe(201);
});

test('of more logins than allowed those end that were not used for longest', async () => {
  await using hub = await createTestHub({ Hub: { session_limit_per_user: 3 } });
  const first = await hub.logIn('alice');
  const browsers = await atOnce(9, async () => {
    const browser = new FakeBrowser();
    expect((await submitLogin(browser, hub.url, 'alice', 'test')).status).toBe(302);
    return browser;
  });
  const last = await hub.logIn('alice');
  const bob = await hub.logIn('bob');
  const listed = await (await hub.api('/users/alice/sessions', admin)).json();
  expect((listed as { sessions: unknown[] }).sessions).toHaveLength(3);
  const open = async (browser: FakeBrowser) =>
    (await browser.request(`${hub.url}hub/home`)).status === 200;
  expect(await open(first)).toBe(false);
  expect(await open(last)).toBe(true);
  expect(await open(bob)).toBe(true);
  const others = await Promise.all(browsers.map(open));
  expect(others.filter(Boolean)).toHaveLength(2);
});

test('a user makes no more servers than allowed, also by asking for many at once', async () => {
  await using hub = await createServerHub({
    Hub: { allow_named_servers: true, named_server_limit_per_user: 3 },
  });
  await createUsers(hub, 'alice');
  const make = (name: string) =>
    hub.api(serverPath('alice', name), admin, { method: 'PUT', body: '{}' });
  const answers = await atOnce(12, (index) => make(`lab-${index}`));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  const refused = answers.find(({ status }) => status !== 201);
  expect(refused?.status).toBe(400);
  expect(await refused?.json()).toMatchObject({
    message: 'There are 3 named servers already, the most that a user may have here.',
    hint: 'Delete one that is no longer needed.',
  });
  const { servers } = (await (
    await hub.api('/users/alice?include_stopped_servers', admin)
  ).json()) as {
    servers: object;
  };
  expect(Object.keys(servers)).toHaveLength(3);
});

test('the options of all servers of a user have one bound, and are in lists only when asked for', async () => {
  await using hub = await createServerHub({ Hub: { allow_named_servers: true } });
  await createUsers(hub, 'alice', 'bob');
  const put = async (user: string, server: string, bytes: number, method = 'PUT') => {
    const body = JSON.stringify({ user_options: { large: 'x'.repeat(bytes) } });
    const answer = await hub.api(serverPath(user, server), admin, { method, body });
    return { status: answer.status, ...((await answer.json()) as { message?: string }) };
  };
  const refusal = {
    status: 400,
    message: 'The options of all servers of a user may take 64 KiB together, written as JSON.',
  };
  expect(await put('alice', 'one', 40_000)).toMatchObject({ status: 201 });
  expect(await put('alice', 'two', 30_000)).toMatchObject(refusal);
  expect(await put('alice', 'two', 20_000)).toMatchObject({ status: 201 });
  expect(await put('alice', 'two', 30_000, 'PATCH')).toMatchObject(refusal);
  expect(await put('alice', 'one', 44_000, 'PATCH')).toMatchObject({ status: 200 });
  expect(await put('bob', 'one', 60_000)).toMatchObject({ status: 201 });

  const optionsIn = async (path: string) => {
    const answer = await (await hub.api(path, admin)).json();
    type Listed = { servers: Record<string, { user_options?: { large: string } }> };
    return ([answer].flat() as Listed[])
      .flatMap(({ servers }) => Object.values(servers))
      .map((server) => server.user_options?.large.length);
  };
  const all = 'include_stopped_servers=1';
  expect(await optionsIn(`/users/alice?${all}`)).toEqual([44_000, 20_000]);
  expect(await optionsIn(`/users?${all}`)).toEqual([undefined, undefined, undefined]);
  expect(await optionsIn(`/users?${all}&include_user_options=1`)).toEqual([44_000, 20_000, 60_000]);
});

test('each limit is off with 0', async () => {
  await using hub = await createPasswordHub(['ada'], {
    Hub: { api_token_limit_per_user: 0, session_limit_per_user: 0 },
  });
  const browser = await hub.logIn('ada', testPassword);
  for (let index = 0; index < 3; index += 1) await hub.logIn('ada', testPassword);
  const page = await browser.request(`${hub.url}hub/account`);
  expect((await submitTo(browser, page, '/hub/token', { note: 'x' })).status).toBe(303);
});
