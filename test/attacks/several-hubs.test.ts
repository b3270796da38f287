import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { generateSync } from 'otplib';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain } from '../support/pages.ts';
import {
  acceptInvitation,
  inviteUser,
  passwordHubConfig,
  testPassword,
} from '../support/password-hub.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { managedService, untilState } from '../support/services.ts';
import { createTestHub, submitLogin, type TestHub, until } from '../support/test-hub.ts';

const redirectUri = 'http://127.0.0.1:9/services/wiki/oauth_callback';
const log = pino({ level: 'silent' });
const clientSecret = 'wiki-secret-0123456789';

describe.skipIf(!hasPostgres())('with two hubs on one database, an attacker', () => {
  const cluster = usePostgres();
  const stack = new AsyncDisposableStack();
  let databaseUrl: string;
  let config: ReturnType<typeof passwordHubConfig>;
  let here: TestHub;
  let there: TestHub;

  beforeAll(async () => {
    databaseUrl = await cluster().createDatabase();
    config = passwordHubConfig({
      Hub: {
        database_url: databaseUrl,
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
          {
            name: 'wiki',
            url: 'http://127.0.0.1:9',
            api_token: clientSecret,
            oauth_redirect_uri: redirectUri,
            oauth_no_confirm: true,
            oauth_grants: ['refresh'],
          },
        ],
      },
    });
    here = stack.use(await createTestHub(config));
    there = stack.use(await createTestHub(config));
    await untilState(here, 'app', 'ready');
    await until(
      async () => (await fetch(`${there.url}services/app/`)).status === 401,
      'the other hub reaches the service',
    );
  });
  afterAll(() => stack.disposeAsync());

  let counter = 0;
  /** A new user who is logged in at the first hub. */
  async function newUser(): Promise<{ readonly name: string; readonly browser: FakeBrowser }> {
    counter += 1;
    const name = `user${counter}`;
    const { secret } = await inviteUser(here, name);
    await acceptInvitation(here, secret, testPassword);
    return { name, browser: await here.logIn(name, testPassword) };
  }

  async function codeFor(browser: FakeBrowser, hub = here): Promise<string> {
    const query = new URLSearchParams({
      client_id: 'service-wiki',
      response_type: 'code',
      redirect_uri: redirectUri,
      state: 'x',
    });
    const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
    return new URL(answer.headers.location ?? '').searchParams.get('code') ?? '';
  }

  interface Tokens {
    readonly access_token?: string;
    readonly refresh_token?: string;
  }

  async function askTokens(hub: TestHub, form: Record<string, string>): Promise<Tokens> {
    const client = { client_id: 'service-wiki', client_secret: clientSecret };
    const answer = await fetch(`${hub.apiUrl}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({ ...client, ...form }),
    });
    return (await answer.json()) as Tokens;
  }
  const exchangeAll = (hub: TestHub, code: string) =>
    askTokens(hub, { grant_type: 'authorization_code', code, redirect_uri: redirectUri });
  const exchange = async (hub: TestHub, code: string) =>
    (await exchangeAll(hub, code)).access_token;
  const refresh = (hub: TestHub, refresh_token = '') =>
    askTokens(hub, { grant_type: 'refresh_token', refresh_token });

  const statusWith = async (hub: TestHub, token: string) => (await hub.api('/user', token)).status;
  /** The hub that made the change refuses at once, the other as soon as it has heard of it. */
  async function expectRefused(token: string): Promise<void> {
    expect(await statusWith(here, token)).toBe(403);
    await until(async () => (await statusWith(there, token)) === 403, 'the other hub refuses it');
  }
  const administer = (path: string, method: string) => here.api(path, adminToken, { method });

  test('gets one token for a code that is sent to both at once, and that one ends', async () => {
    const { browser } = await newUser();
    const code = await codeFor(browser);
    const tokens = await Promise.all(
      Array.from({ length: 8 }, (_, index) => exchange(index % 2 === 0 ? here : there, code)),
    );
    const [token = '', ...others] = tokens.filter((each) => each !== undefined);
    expect([token === '', others]).toEqual([false, []]);
    await expectRefused(token);
  });

  test('has no two good refresh tokens after 100 refreshes at three hubs at once, and none after a logout', async () => {
    await using third = await createTestHub(config);
    const hubs = [here, there, third];
    const { browser } = await newUser();
    const { refresh_token } = await exchangeAll(here, await codeFor(browser));
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        refresh(hubs[index % hubs.length] ?? here, refresh_token),
      ),
    );
    await using database = await openDatabase(databaseUrl, { directory: '.', log });
    const good = await database.kysely
      .selectFrom('refresh_tokens')
      .innerJoin('grants', 'grants.id', 'refresh_tokens.grant_id')
      .select(['grant_id', 'used_at'])
      .where('client_id', '=', 'service-wiki')
      .where('used_at', 'is', null)
      .execute();
    // Refused are those for which a slow machine used up the seconds of grace: then the whole family has ended.
    const refused = answers.filter((each) => each.refresh_token === undefined);
    expect(good).toHaveLength(refused.length === 0 ? 1 : 0);
    const [{ access_token = '', refresh_token: latest } = {}] = answers;
    await browser.request(`${here.url}hub/logout`);
    await expectRefused(access_token);
    expect(await refresh(there, latest)).toMatchObject({ error: 'invalid_grant' });
  });

  test('uses neither code nor token at one once the user is deleted at the other', async () => {
    const { name, browser } = await newUser();
    const token = (await exchange(there, await codeFor(browser))) ?? '';
    expect(await statusWith(there, token)).toBe(200);
    const code = await codeFor(browser);
    expect((await administer(`/users/${name}`, 'DELETE')).status).toBe(204);
    await expectRefused(token);
    expect(await exchange(there, code)).toBeUndefined();
    // Nor does a user of the same name inherit them.
    expect((await administer(`/users/${name}`, 'POST')).status).toBe(201);
    await expectRefused(token);
    expect(await exchange(there, code)).toBeUndefined();
  });

  test('opens nothing at one with a login that has ended at the other', async () => {
    const { browser } = await newUser();
    const page = await browser.open(`${there.url}services/app/`);
    expect(page.status).toBe(200);
    const code = await codeFor(browser);
    const cookie = browser.cookieHeader(`${there.url}services/app/socket`);
    await browser.request(`${here.url}hub/logout`);
    const headers = { cookie, accept: 'application/json', origin: new URL(there.url).origin };
    await until(
      async () =>
        (await fetch(`${there.url}services/app/`, { redirect: 'manual', headers })).status === 401,
      'the other hub refuses the login',
    );
    const socket = new WebSocket(`${there.url.replace('http', 'ws')}services/app/socket`, {
      headers,
    });
    socket.on('error', () => {});
    const [, refusal] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(refusal.statusCode).toBe(401);
    socket.terminate();
    expect(await exchange(there, code)).toBeUndefined();
  });

  test('uses a link once, whichever hub it is sent to', async () => {
    const { name } = await newUser();
    const { secret } = await inviteUser(here, name);
    const answers = await Promise.all(
      [here, there, here, there].map((hub, index) =>
        acceptInvitation(hub, secret, `quiet morning rivers ${index}`).catch(() => undefined),
      ),
    );
    expect(answers.filter((answer) => answer?.status === 303)).toHaveLength(1);
  });

  test('uses a code of an authenticator app once, whichever hub it is sent to', async () => {
    const { name, browser } = await newUser();
    const page = await browser.request(`${here.url}hub/account/second-factor`);
    const secret =
      /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(page.body)?.[1]?.replaceAll(' ', '') ?? '';
    const codeIn = (steps: number) =>
      generateSync({ secret, epoch: Math.floor(Date.now() / 1000) + 30 * steps });
    expect((await submitMain(browser, page, { code: codeIn(0) })).status).toBe(200);
    const code = codeIn(1);
    const asked = await Promise.all(
      [here, there, here, there].map(async (hub) => {
        const guest = new FakeBrowser();
        await submitLogin(guest, hub.url, name, testPassword);
        return { guest, form: await guest.request(`${hub.url}hub/login/second-factor`) };
      }),
    );
    const answers = await Promise.all(
      asked.map(({ guest, form }) => submitMain(guest, form, { code })),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
  });
});
