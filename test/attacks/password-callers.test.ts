import { generateSync } from 'otplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain } from '../support/pages.ts';
import { hashesDuring } from '../support/password-hashes.ts';
import {
  acceptInvitation,
  createPasswordHub,
  inviteUser,
  testPassword,
} from '../support/password-hub.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';

const attempts = 3;
const wrong = 'not the password';
let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob'], {
    Hub: { trusted_proxies: ['127.0.0.1'] },
    Authenticator: { lockout_attempts: attempts, lockout_delay: 600, lockout_max_delay: 900 },
  });
});
afterAll(() => hub[Symbol.asyncDispose]());

let made = 0;
/** A new user with a password; no test locks out the user of another. */
async function newUser(): Promise<string> {
  made += 1;
  const name = `user${made}`;
  const { secret } = await inviteUser(hub, name);
  await acceptInvitation(hub, secret, testPassword);
  return name;
}

interface Sent {
  readonly of?: string;
  readonly username: string;
  readonly password?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly authenticator?: string;
}

/** Asks for a token with a password, each test from an address of its own unless it names one. */
async function ask({ of, username, password = testPassword, headers, body, authenticator }: Sent) {
  const answer = await fetch(`${hub.url}hub/api/users/${of ?? username}/tokens`, {
    method: 'POST',
    headers: { 'x-forwarded-for': `192.0.2.${made}`, ...headers },
    body: JSON.stringify({
      ...body,
      auth: { username, password, ...(authenticator !== undefined && { authenticator }) },
    }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    headers: answer.headers,
    text,
    body: JSON.parse(text) as { token: string; id: string; message: string; hint?: string },
  };
}

async function tokensOf(name: string): Promise<unknown[]> {
  const answer = await hub.api(`/users/${name}/tokens`, adminToken);
  return ((await answer.json()) as { api_tokens: unknown[] }).api_tokens;
}

async function auditOf(name: string) {
  const answer = await hub.api(`/audit?target=${name}`, adminToken);
  const { entries } = (await answer.json()) as {
    entries: { action: string; result: string; actor: object; detail: object }[];
  };
  return entries;
}

test('a name and a password make a token, and no session', async () => {
  const name = await newUser();
  const sessions = async () => {
    const answer = await hub.api(`/users/${name}/sessions`, adminToken);
    return ((await answer.json()) as { sessions: { id: string }[] }).sessions.map(({ id }) => id);
  };
  const before = await sessions();
  const answer = await ask({
    username: name,
    body: { note: 'a script', scopes: ['read:users:name!user'] },
  });
  expect(answer.status).toBe(201);
  expect(answer.headers.getSetCookie()).toEqual([]);
  const whoAmI = await hub.api('/user', answer.body.token);
  expect(await whoAmI.json()).toMatchObject({ name, scopes: [`read:users:name!user=${name}`] });
  expect(await sessions()).toEqual(before);
  expect((await auditOf(name))[0]).toMatchObject({
    action: 'token.create',
    result: 'done',
    actor: { kind: 'user', name, session_id: null, token_id: null, address: `192.0.2.${made}` },
    target: { part: answer.body.id },
  });
});

test('JSON may come as any type, as clients of JupyterHub send it', async () => {
  const name = await newUser();
  for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
    expect((await ask({ username: name, headers: { 'content-type': type } })).status).toBe(201);
  }
});

test('a password is good for its own user, and says nothing of others', async () => {
  const name = await newUser();
  const other = await newUser();
  const refused = await ask({ username: name, of: other });
  const unknown = await ask({ username: name, of: 'no-such-user' });
  expect([refused.status, unknown.status]).toEqual([403, 403]);
  expect(refused.text).toBe(unknown.text);
  expect(await tokensOf(other)).toEqual([]);
  expect((await ask({ username: 'ada', of: other })).status).toBe(201);
  expect((await ask({ username: name, body: { scopes: ['admin:users'] } })).status).toBe(400);
  expect(await tokensOf(name)).toEqual([]);
});

test('failures count with those of the login form, right passwords wait too', async () => {
  const name = await newUser();
  const headers = { 'x-forwarded-for': '127.0.0.1' };
  for (let round = 0; round < attempts; round += 1) {
    expect((await ask({ username: name, password: wrong, headers })).status).toBe(403);
  }
  const delayed = await ask({ username: name, headers });
  expect(delayed.status).toBe(429);
  expect(Number(delayed.headers.get('retry-after'))).toBeGreaterThan(500);
  const form = await submitLogin(new FakeBrowser(), hub.url, name, testPassword);
  expect(form.status).toBe(429);
  expect(await tokensOf(name)).toEqual([]);
  let rows = await auditOf(name);
  await until(async () => {
    rows = await auditOf(name);
    return rows.some(({ action, result }) => action === 'login' && result === 'refused');
  }, 'the refusal is recorded');
  expect(JSON.stringify([rows, hub.logLines])).not.toContain(wrong);
});

test('guesses sent all at once are no more than the limit', async () => {
  const name = await newUser();
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => ask({ username: name, password: wrong })),
  );
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(attempts);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(12 - attempts);
});

test('an unknown name gets the same answers, at the same cost', async () => {
  const name = await newUser();
  const seen = async (username: string) => {
    const answers: { status: number; text: string }[] = [];
    const hashes = await hashesDuring(async () => {
      for (let round = 0; round <= attempts; round += 1) {
        const { status, text } = await ask({ username, password: wrong });
        answers.push({ status, text: text.replaceAll(/\d+ (?:second|minute)s?/g, 'TIME') });
      }
    });
    return { answers, hashes };
  };
  // The first comparison with nothing makes what later ones compare with.
  await ask({ username: 'nobody-either', password: wrong });
  const known = await seen(name);
  expect(known.hashes).toHaveLength(attempts);
  expect(await seen('no-such-user')).toEqual(known);
});

test('an account with a second factor gets no token by its password alone', async () => {
  const name = await newUser();
  const browser = await hub.logIn(name, testPassword);
  const page = await browser.request(`${hub.url}hub/account/second-factor`);
  const secret = /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(page.body)?.[1]?.replaceAll(' ', '') ?? '';
  const code = generateSync({ secret, epoch: Math.floor(Date.now() / 1000) });
  expect((await submitMain(browser, page, { code })).body).toContain('recovery');
  const answer = await ask({ username: name });
  expect(answer.status).toBe(403);
  expect(answer.body).toMatchObject({
    message: 'This account has a second factor: its password alone makes no token.',
    hint: expect.stringContaining('token page'),
  });
  // Who does not know the password does not learn of it.
  expect((await ask({ username: name, password: wrong })).text).not.toContain('second factor');
  expect(await tokensOf(name)).toEqual([]);
});

test('a page that visitors open tries no passwords from their addresses', async () => {
  const name = await newUser();
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: new URL(hub.url).origin },
    { 'sec-fetch-site': 'same-origin' },
  ]) {
    for (let round = 0; round < attempts; round += 1) {
      expect((await ask({ username: name, password: wrong, headers })).status).toBe(403);
    }
    expect((await ask({ username: name, headers })).status).toBe(403);
  }
  // None of it counted.
  expect((await ask({ username: name })).status).toBe(201);
});

test('a token wins: the password beside it is not tried', async () => {
  const name = await newUser();
  const token = await tokenOf(hub, name, ['read:users!user']);
  const answer = await ask({ username: name, headers: { authorization: `token ${token}` } });
  expect(answer.status).toBe(403);
});

test.each([
  ['no login method of this name', { authenticator: 'pam' }, 403],
  ['a name that is no text', { username: 5 as never }, 400],
  ['a huge password', { password: 'x'.repeat(100_000) }, 413],
  ['a name that no database takes', { username: 'nul\0' }, 403],
])('%s is refused', async (_, sent, status) => {
  const of = await newUser();
  const answer = await ask({ username: of, of, ...sent });
  expect(answer.status).toBe(status);
  expect(await tokensOf(of)).toEqual([]);
});

test.each([
  ['no body', undefined],
  ['no credentials', '{}'],
  ['a list', '[]'],
])('%s names no one', async (_, body) => {
  const answer = await fetch(`${hub.url}hub/api/users/bob/tokens`, {
    method: 'POST',
    ...(body !== undefined && { body }),
  });
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ message: 'Missing or invalid credentials.' });
});

test('the deprecated way of JupyterHub says what to use', async () => {
  const answer = await fetch(`${hub.url}hub/api/authorizations/token`, { method: 'POST' });
  expect(answer.status).toBe(410);
  expect(await answer.json()).toMatchObject({
    hint: expect.stringContaining('POST /hub/api/users/{name}/tokens'),
  });
});
