import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { formPluginSource } from '../support/form-plugin.ts';
import { submitTo } from '../support/pages.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

/** A provider that tells who a user is by what was typed as the password: `name;e-mail`. */
const plugin = formPluginSource({
  name: 'telling',
  userFields: `info: (([displayName, email]) => ({
    displayName, email, isEmailVerified: true, pictureUrl: 'https://example.org/' + name + '.png',
  }))(form.get('password').split(';'))`,
});

const scopes = {
  directory: ['list:users', 'read:users:info'],
  'of-bob': ['list:users', 'read:users:info!user=bob'],
  blind: ['list:users', 'read:users', 'read:servers', 'read:roles'],
};

let directory: string;
let hub: TestHub;
/** Says which headers it gets. */
let app: Awaited<ReturnType<typeof startUpstream>>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-user-info-'));
  await mkdir(join(directory, 'plugins'));
  await writeFile(join(directory, 'plugins', 'telling.ts'), plugin);
  app = await startUpstream((req, res) => void res.end(JSON.stringify(req.headers)));
  const guarded = { url: app.url, access: 'gateway', oauth_no_confirm: true };
  hub = await createTestHub({
    DummyAuthenticator: undefined,
    PasswordAuthenticator: {},
    Hub: {
      plugins_dir: join(directory, 'plugins'),
      authenticator_class: ['password', 'telling'],
      picture_origins: ['https://example.org'],
      services: [
        ...Object.keys(scopes).map((name) => ({ name, api_token: `token-of-${name}` })),
        { ...guarded, name: 'told', oauth_client_allowed_scopes: ['read:users:info!user'] },
        { ...guarded, name: 'untold', oauth_client_allowed_scopes: ['read:users!user'] },
      ],
      load_roles: [
        { name: 'user', scopes: ['self', 'access:services'] },
        ...Object.entries(scopes).map(([name, of]) => ({
          name,
          scopes: of,
          services: [name],
        })),
      ],
    },
  });
  for (const [name, info] of [
    ['ann', 'Ann Example;ann@example.org'],
    ['bob', 'Bob Builder;bob@example.org'],
  ] as const) {
    expect((await logIn(name, info)).status).toBe(302);
  }
  const { secret } = await inviteUser(hub, 'local');
  await acceptInvitation(hub, secret, testPassword);
});
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function logIn(name: string, info: string) {
  const browser = new FakeBrowser();
  const page = await browser.request(`${hub.url}hub/login`);
  const values = { authenticator: 'telling', username: name, password: info };
  return submitForm(browser, page, values);
}

interface Answer {
  readonly name?: string;
  readonly user_info?: Record<string, unknown>;
  readonly message?: string;
}

async function send<Body = Answer>(path: string, token: string, patch?: object) {
  const answer = await hub.api(path, token, {
    method: patch === undefined ? 'GET' : 'PATCH',
    ...(patch !== undefined && { body: JSON.stringify(patch) }),
  });
  return { status: answer.status, body: (await answer.json()) as Body };
}

const infoOf = async (name: string) => (await send(`/users/${name}`, adminToken)).body.user_info;

describe('what a provider tells', () => {
  test('is in the model of the user, for whom holds the scope', async () => {
    const reported = {
      display_name: 'Ann Example',
      email: 'ann@example.org',
      email_verified: true,
      avatar_url: 'https://example.org/ann.png',
      authenticator: 'telling',
    };
    expect(await infoOf('ann')).toEqual(reported);
    expect((await send('/users/ann', 'token-of-directory')).body).toMatchObject({
      user_info: reported,
    });
    expect((await send('/users/ann', 'token-of-blind')).body).not.toHaveProperty('user_info');
    expect((await send('/users/ann', 'token-of-of-bob')).body).not.toHaveProperty('user_info');
    const list = (await send<Answer[]>('/users', 'token-of-of-bob')).body;
    expect(list.flatMap((user) => (user.user_info === undefined ? [] : user.name))).toEqual([
      'bob',
    ]);
  });

  test('shows a picture of an allowed origin on pages, which tells that origin no page', async () => {
    await hub.api('/users/local', adminToken, { method: 'PATCH', body: '{"admin":true}' });
    const root = await hub.logIn('local', testPassword);
    const page = await root.request(`${hub.url}hub/admin/users/ann`);
    expect(page.body).toMatch(
      /<img class="portrait" src="https:\/\/example\.org\/ann\.png" alt="" [^>]*referrerpolicy="no-referrer">/,
    );
    expect(page.headers['content-security-policy']).toContain(
      "img-src 'self' data: https://example.org;",
    );
    const user_info = { avatar_url: 'https://tracker.example/pixel.png' };
    await send('/users/local', adminToken, { user_info });
    const own = await root.request(`${hub.url}hub/account`);
    expect(own.body).not.toContain('<img class="portrait"');
    const other = await root.request(`${hub.url}hub/admin/users/local`);
    expect(other.body).not.toContain('<img class="portrait"');
    expect(other.body).toContain('<code>https://tracker.example/pixel.png</code>');
    await send('/users/local', adminToken, { user_info: { avatar_url: 'https://example.org/l' } });
    expect((await root.request(own.url)).body).toContain('src="https://example.org/l"');
    await send('/users/local', adminToken, { user_info: { avatar_url: null } });
    await hub.api('/users/local', adminToken, { method: 'PATCH', body: '{"admin":false}' });
  });

  test('is told to its user, by a token that may read it', async () => {
    const own = await tokenOf(hub, 'ann', ['self']);
    expect((await send('/user', own)).body.user_info).toMatchObject({ email: 'ann@example.org' });
    const narrow = await tokenOf(hub, 'ann', ['read:users!user']);
    expect((await send('/user', narrow)).body).not.toHaveProperty('user_info');
  });

  test('is refreshed at each login, and taken away when it is no longer told', async () => {
    await logIn('cy', 'Cy;cy@example.org');
    await logIn('cy', 'Cyrus the Great\u202e;');
    expect(await infoOf('cy')).toMatchObject({ display_name: 'Cyrus the Great', email: null });
  });

  test('is not changed here', async () => {
    const answer = await send('/users/ann', adminToken, { user_info: { display_name: 'Eve' } });
    expect(answer.status).toBe(409);
    expect(answer.body.message).toContain('“Any name”');
    expect(await infoOf('ann')).toMatchObject({ display_name: 'Ann Example' });
  });
});

describe('a guarded service', () => {
  const headersOf = async (service: string, name: string, info: string) => {
    const browser = new FakeBrowser();
    const page = await browser.request(`${hub.url}hub/login`);
    const values = { authenticator: 'telling', username: name, password: info };
    await submitForm(browser, page, values);
    await browser.open(`${hub.url}services/${service}/`);
    const { body } = await browser.request(`${hub.url}services/${service}/`, {
      headers: { 'x-hub-email': 'boss@example.org', 'x-hub-display-name': 'Boss' },
    });
    return JSON.parse(body) as Record<string, string>;
  };

  test('is told who the visitor is, if it may read it', async () => {
    const headers = await headersOf('told', 'dora', 'Döra, Ü;dora@example.org');
    expect(headers['x-hub-user']).toBe('dora');
    expect(decodeURIComponent(headers['x-hub-display-name'] ?? '')).toBe('Döra, Ü');
    expect(headers['x-hub-email']).toBe('dora@example.org');
    const claims = headers['x-hub-assertion']?.split('.')[1] ?? '';
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      name: 'Döra, Ü',
      email: 'dora@example.org',
      email_verified: true,
    });
  });

  test('is told no more than the name without the scope, whatever visitors send', async () => {
    const headers = await headersOf('untold', 'dora', 'Döra, Ü;dora@example.org');
    expect(headers['x-hub-user']).toBe('dora');
    expect(headers).not.toHaveProperty('x-hub-email');
    expect(headers).not.toHaveProperty('x-hub-display-name');
  });
});

describe('a search among users', () => {
  const found = async (text: string, token: string) => {
    const path = `/users?name_filter=${encodeURIComponent(text)}`;
    return (await send<Answer[]>(path, token)).body.map(({ name }) => name);
  };

  test('finds display names and e-mail addresses, where the caller may read them', async () => {
    expect(await found('BUILDER', 'token-of-directory')).toEqual(['bob']);
    expect(await found('ann@example', adminToken)).toEqual(['ann']);
    expect(await found('example.org', 'token-of-of-bob')).toEqual(['bob']);
    expect(await found('example.org', 'token-of-blind')).toEqual([]);
  });
});

describe('on the pages', () => {
  const textOf = async (browser: FakeBrowser, path: string) =>
    (await browser.request(`${hub.url}hub/${path}`)).body;

  test('users choose their display name where no provider tells it, and nothing more', async () => {
    const local = await hub.logIn('local', testPassword);
    const form = await local.request(`${hub.url}hub/account`);
    const rename = (display_name: string) =>
      submitTo(local, form, '/hub/account/profile', { display_name, email: 'boss@example.org' });
    expect((await rename('  <i>Élodie</i>  Local ')).status).toBe(303);
    const home = await textOf(local, 'home');
    expect(home).toContain('<b><bdi>&lt;i&gt;Élodie&lt;/i&gt; Local</bdi></b> (local)');
    expect(await infoOf('local')).toMatchObject({ display_name: '<i>Élodie</i> Local' });
    expect(await infoOf('local')).not.toMatchObject({ email: 'boss@example.org' });
    const refused = await rename('x\u202ey');
    expect([refused.status, refused.body.includes('cannot be seen')]).toEqual([400, true]);
    await rename('');
    expect(await infoOf('local')).toMatchObject({ display_name: null });
  });

  test('what a provider tells is shown, and says where it is changed', async () => {
    const ann = new FakeBrowser();
    const login = await ann.request(`${hub.url}hub/login`);
    const values = { authenticator: 'telling', username: 'ann', password: 'Ann Example;' };
    const page = await submitForm(ann, login, values);
    expect(page.status).toBe(302);
    const account = await textOf(ann, 'account');
    expect(account).toContain('“Any name” tells this at each login.');
    expect(account).not.toContain('/hub/account/profile');
    const foreign = await ann.request(`${hub.url}hub/account`);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(foreign.body)?.[1] ?? '';
    const forced = await ann.request(`${hub.url}hub/account/profile`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ _csrf: csrf, display_name: 'Eve' }).toString(),
    });
    expect(forced.status).toBe(400);
    expect(forced.body).toContain('“Any name” tells this at each login.');
    await logIn('ann', 'Ann Example;ann@example.org');
  });

  test('administrators find users by it, and set it', async () => {
    await hub.api('/users/local', adminToken, { method: 'PATCH', body: '{"admin":true}' });
    const root = await hub.logIn('local', testPassword);
    const list = await textOf(root, 'admin/users?search=BOB%20BUILD');
    expect(list).toContain('<bdi>Bob Builder</bdi> · bob@example.org');
    expect(list).not.toContain('ann@example.org');
    expect(await textOf(root, 'admin/users/bob')).not.toContain('/users/bob/profile');
    await hub.api('/users/carl', adminToken, { method: 'POST', body: '{}' });
    const carl = await root.request(`${hub.url}hub/admin/users/carl`);
    const set = (values: Readonly<Record<string, string>>) =>
      submitTo(root, carl, '/hub/admin/users/carl/profile', values);
    const refused = await set({ display_name: 'Carl', email: 'carl' });
    expect([refused.status, refused.body.includes('not an e-mail address')]).toEqual([400, true]);
    const typed = { display_name: 'Carl', email: 'carl@example.org' };
    const picture = await set({ ...typed, picture_url: 'http://example.org/x.png' });
    expect([picture.status, picture.body.includes('not an https://')]).toEqual([400, true]);
    expect((await set({ ...typed, picture_url: 'https://example.org/c.png' })).status).toBe(303);
    expect(await infoOf('carl')).toMatchObject({
      email: 'carl@example.org',
      email_verified: true,
      avatar_url: 'https://example.org/c.png',
    });
    // The page that is older leaves what it did not change as someone else has saved it.
    expect((await set({ display_name: 'Carla', email: '', picture_url: '' })).status).toBe(303);
    expect(await infoOf('carl')).toMatchObject({
      display_name: 'Carla',
      email: 'carl@example.org',
      avatar_url: 'https://example.org/c.png',
    });
    const now = await root.request(`${hub.url}hub/admin/users/carl`);
    const emptied = { display_name: 'Carla', email: 'carl@example.org', picture_url: '' };
    await submitTo(root, now, '/hub/admin/users/carl/profile', emptied);
    expect(await infoOf('carl')).toMatchObject({ display_name: 'Carla', avatar_url: null });
    await hub.api('/users/local', adminToken, { method: 'PATCH', body: '{"admin":false}' });
  });
});

describe('what an administrator sets', () => {
  test('stays as it is through logins by password, and counts as verified', async () => {
    const change = { display_name: 'Lo Cal', email: 'lo@example.org' };
    const answer = await send('/users/local', adminToken, { user_info: change });
    expect(answer.status).toBe(200);
    await hub.logIn('local', testPassword);
    expect(await infoOf('local')).toEqual({
      ...change,
      email_verified: true,
      avatar_url: null,
      authenticator: null,
    });
    await send('/users/local', adminToken, { user_info: { email: null } });
    expect(await infoOf('local')).toMatchObject({ display_name: 'Lo Cal', email: null });
  });

  test.each([
    [{ display_name: 'x'.repeat(256) }, 'longer than 255'],
    [{ display_name: 'Lo\u202eCal' }, 'cannot be seen'],
    [{ email: 'lo' }, 'not an e-mail address'],
    [{ avatar_url: 'javascript:alert(1)' }, 'https://'],
    [{ nickname: 'lo' }, 'nickname'],
  ])('is refused with a reason: %j', async (user_info, reason) => {
    const answer = await send('/users/local', adminToken, { user_info });
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).toContain(reason);
  });

  test('is noted in the audit log, without what it is', async () => {
    await send('/users/local', adminToken, { user_info: { display_name: 'Noted' } });
    const text = await (await hub.api('/audit?action=user_info.change', adminToken)).text();
    expect(text).toContain('"name":"local"');
    expect(text).not.toContain('Noted');
  });

  test('needs more than the right to read it', async () => {
    const patch = { user_info: { display_name: 'x' } };
    const own = await tokenOf(hub, 'local', ['self']);
    for (const token of ['token-of-directory', own]) {
      expect([403, 404]).toContain((await send('/users/local', token, patch)).status);
    }
  });
});
