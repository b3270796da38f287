import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  guarded,
  serverPath,
  startUntilReady,
  stopServer,
  submitFormTo,
  tokenOf,
} from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

const admins = { Authenticator: { admin_users: ['root'] } };

/** Every step of a browser from an address on, with what it was answered and the cookies set. */
async function follow(browser: FakeBrowser, url: string): Promise<BrowserAnswer[]> {
  const steps = [await browser.request(url)];
  for (let last = steps[0]; last?.headers.location !== undefined && steps.length < 12; ) {
    last = await browser.request(new URL(last.headers.location, last.url).href);
    steps.push(last);
  }
  return steps;
}

const pathOf = ({ url }: BrowserAnswer) => new URL(url).pathname;
const cookiesOf = ({ headers }: BrowserAnswer) =>
  (headers['set-cookie'] ?? []).map((line) => line.split('=')[0]);

const startFor = (hub: TestHub, userName: string, serverName = ''): Promise<void> =>
  startUntilReady(hub, serverPath(userName, serverName));

describe.each([
  {
    access: 'server',
    cmd: guarded(...fixtureApp('gateway-app')),
    // The door asks, and then consent is given.
    asking: { path: '/hub/open-server', form: /open-server/ },
  },
  {
    access: 'gateway',
    cmd: fixtureApp('gateway-app'),
    asking: { path: '/hub/api/oauth2/authorize', form: /authorize/ },
  },
])('a server with access "$access"', ({ asking, ...Spawner }) => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await createServerHub({
      ...admins,
      Spawner,
      Hub: {
        allow_named_servers: true,
        load_groups: [
          { name: 'course', users: ['alice'] },
          { name: 'leads', users: ['gina'] },
        ],
        load_roles: [
          { name: 'course-lead', scopes: ['access:servers!group=course'], groups: ['leads'] },
        ],
      },
    });
    await createUsers(hub, 'bob');
    await Promise.all([startFor(hub, 'alice'), startFor(hub, 'bob')]);
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  test('logs its owner in through the hub step by step, without a consent page', async () => {
    const browser = await hub.logIn('alice');
    const steps = await follow(browser, `${hub.url}user/alice/notes?x=1`);
    expect(steps.map((step) => [step.status, pathOf(step)])).toEqual([
      [302, '/user/alice/notes'],
      [302, '/hub/api/oauth2/authorize'],
      [302, '/user/alice/oauth_callback'],
      [200, '/user/alice/notes'],
    ]);
    const asked = new URL(steps[0]?.headers.location ?? '', hub.url).searchParams;
    expect(asked.get('client_id')).toBe('hub-user-alice');
    expect(asked.get('redirect_uri')).toMatch(/\/user\/alice\/oauth_callback$/);
    expect(asked.get('state')).toMatch(/^[\w-]{16,}$/);
    expect(cookiesOf(steps[2]!)).toContain('hub-user-alice');
    expect(steps[3]?.url).toBe(`${hub.url}user/alice/notes?x=1`);
    expect(browser.cookie('hub-user-alice')).toMatchObject({ path: '/user/alice/' });
    expect(browser.cookie('hub-user-alice')?.value).not.toMatch(/hub_/);
    // From now on the cookie is enough.
    expect((await browser.request(`${hub.url}user/alice/again`)).status).toBe(200);
    // The app sees neither of the hub's cookies.
    const { headers } = JSON.parse((await browser.request(`${hub.url}user/alice/`)).body);
    expect(String(headers.cookie ?? '')).not.toMatch(/hub-/);
  });

  test('keeps out users without the scope, and lets an administrator in after asking', async () => {
    const [bob, root] = [await hub.logIn('bob'), await hub.logIn('root')];
    const refused = (await follow(bob, `${hub.url}user/alice/`)).at(-1);
    expect(refused?.status).toBe(403);
    expect(bob.cookieNames()).not.toContain('hub-user-alice');

    const question = (await follow(root, `${hub.url}user/alice/`)).at(-1);
    expect([question?.status, pathOf(question!)]).toEqual([200, asking.path]);
    expect(question?.body).toContain('alice');
    const allowed = await submitFormTo(root, question!, asking.form, { decision: 'allow' });
    const opened = (await follow(root, new URL(allowed.headers.location ?? '', hub.url).href)).at(
      -1,
    );
    expect(opened?.status).toBe(200);
    expect(pathOf(opened!)).toBe('/user/alice/');
  });

  test('takes the tokens of users who may, and refuses the others with a status', async () => {
    const ask = async (token?: string) => {
      const headers = token === undefined ? {} : { authorization: `token ${token}` };
      const answer = await fetch(`${hub.url}user/alice/`, {
        headers: { accept: 'application/json', ...headers },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    expect(await ask(await tokenOf(hub, 'alice'))).toBe(200);
    expect(await ask(await tokenOf(hub, 'bob'))).toBe(403);
    expect(await ask(await tokenOf(hub, 'alice', ['read:users!user']))).toBe(403);
    expect([401, 403]).toContain(await ask('hub_nonsense'));
    expect([401, 403]).toContain(await ask());
    expect(await ask(adminToken)).toBe(200);
  });

  test('is open to the tokens of those who may open the servers of a group', async () => {
    const authorization = `token ${await tokenOf(hub, 'gina')}`;
    const statusAt = async (name: string) => {
      const answer = await fetch(`${hub.url}user/${name}/`, { headers: { authorization } });
      await answer.arrayBuffer();
      return answer.status;
    };
    expect(await statusAt('alice')).toBe(200);
    expect(await statusAt('bob')).toBe(403);
    const gina = await hub.logIn('gina');
    const question = (await follow(gina, `${hub.url}user/alice/`)).at(-1);
    expect([question?.status, pathOf(question!)]).toEqual([200, asking.path]);
  });

  test('is forgotten by a browser whose person logs out', async () => {
    const browser = await hub.logIn('alice');
    expect((await browser.open(`${hub.url}user/alice/`)).status).toBe(200);
    const home = await browser.open(`${hub.url}hub/home`);
    await submitFormTo(browser, home, /logout/);
    const after = (await follow(browser, `${hub.url}user/alice/`)).at(-1);
    expect(pathOf(after!)).toBe('/hub/login');
  });

  test('of a name is a client of its own beside the default one', async () => {
    const browser = await hub.logIn('alice');
    await startFor(hub, 'alice', 'lab');
    const steps = await follow(browser, `${hub.url}user/alice/lab/x`);
    expect(steps.at(-1)?.status).toBe(200);
    const asked = new URL(steps[0]?.headers.location ?? '', hub.url).searchParams;
    expect(asked.get('client_id')).toBe('hub-user-alice-lab');
    expect(browser.cookie('hub-user-alice-lab')).toMatchObject({ path: '/user/alice/lab/' });
    expect((await follow(browser, `${hub.url}user/alice/x`)).at(-1)?.status).toBe(200);
    expect(browser.cookie('hub-user-alice')).toMatchObject({ path: '/user/alice/' });
    const [, apps = ''] = (await browser.request(`${hub.url}hub/account`)).body.split('id="apps"');
    const allowed = Array.from(apps.matchAll(/<li>[^>]*><strong>([^<]+)/g), ([, name]) => name);
    expect(allowed.toSorted()).toEqual(['Your server', 'lab']);
    // Back after a stop and a start, with the cookie it had.
    await stopServer(hub, serverPath('alice', 'lab'));
    await startFor(hub, 'alice', 'lab');
    expect((await follow(browser, `${hub.url}user/alice/lab/x`)).at(-1)?.status).toBe(200);
  });
});

describe('a server that checks visitors itself', () => {
  const Spawner = { access: 'server', cmd: guarded(...fixtureApp('gateway-app')) };

  test('asks an administrator for consent to what goes beyond letting them in', async () => {
    await using hub = await createServerHub({
      ...admins,
      Spawner: { ...Spawner, oauth_client_allowed_scopes: ['read:users!user'] },
    });
    await createUsers(hub, 'alice');
    await startFor(hub, 'alice');
    const root = await hub.logIn('root');
    const question = (await follow(root, `${hub.url}user/alice/x`)).at(-1);
    const answer = await submitFormTo(root, question!, /open-server/);
    const steps = await follow(root, new URL(answer.headers.location ?? '', hub.url).href);
    const last = steps.at(-1);
    expect(pathOf(last!)).toBe('/hub/api/oauth2/authorize');
    expect(last?.body).toContain('read:users!user');
  });

  test('opens again in a browser that was closed, which keeps no session id', async () => {
    await using hub = await createServerHub({ Spawner });
    const browser = await hub.logIn('alice');
    await startFor(hub, 'alice');
    expect((await browser.open(`${hub.url}user/alice/`)).status).toBe(200);
    browser.setCookie('hub-session-id', 'lost; Max-Age=0');
    expect(browser.cookieNames()).not.toContain('hub-session-id');
    const steps = await follow(browser, `${hub.url}user/alice/notes`);
    expect(steps.map(pathOf)).toEqual([
      '/user/alice/notes',
      '/hub/api/oauth2/authorize',
      '/user/alice/oauth_callback',
      '/user/alice/notes',
    ]);
    expect(steps.at(-1)?.status).toBe(200);
  });
});

describe('a user whose name is unusual', () => {
  const names = [
    'ann smith',
    'ann.smith',
    'ann@example.org',
    '100%',
    'a%2fb',
    'zoë',
    'дарья',
    '李小龍',
    "o'hara (1)",
    'a+b&c=d;e',
    '~tilde~',
    '-',
    'x'.repeat(255),
    '漢'.repeat(60),
  ];

  let hub: TestHub;
  beforeAll(async () => {
    hub = await createServerHub({
      Spawner: { access: 'server', cmd: guarded(...fixtureApp('prints-environment')) },
    });
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  test.each(names)('%s has a server, an address, a cookie and a folder', async (name) => {
    const browser = await hub.logIn(name);
    await startFor(hub, name);
    const answer = await hub.api(serverPath(name), adminToken);
    const { url } = (await answer.json()) as { url: string };
    const opened = await browser.open(new URL(url, hub.url).href);
    expect(opened.status).toBe(200);
    const { environment, cwd } = JSON.parse(opened.body) as {
      environment: Record<string, string>;
      cwd: string;
    };
    expect(environment['HUB_USER']).toBe(name);
    expect(cwd.startsWith(`${hub.directory}/homes/`)).toBe(true);
    const cookies = browser.cookieNames().filter((cookie) => cookie.startsWith('hub-user-'));
    const [state, token] = [
      `${environment['HUB_CLIENT_ID']}-oauth-state-round`,
      environment['HUB_CLIENT_ID'],
    ];
    expect(cookies.filter((cookie) => cookie !== state)).toEqual([token]);
    await stopServer(hub, serverPath(name));
  });

  test('names that differ by encoding alone have everything of their own, those that differ by case are one', async () => {
    const twins = ['ann', 'a%6en', 'a%2fb', 'a%252fb'];
    await using hub = await createServerHub({
      Spawner: { cmd: fixtureApp('prints-environment') },
    });
    await createUsers(hub, ...twins);
    const seen = await Promise.all(
      twins.map(async (name) => {
        await startFor(hub, name);
        const browser = await hub.logIn(name);
        const answer = await hub.api(serverPath(name), adminToken);
        const { url } = (await answer.json()) as { url: string };
        const { body } = await browser.open(new URL(url, hub.url).href);
        const { environment, cwd } = JSON.parse(body);
        expect(environment.HUB_USER).toBe(name);
        return [cwd.toLowerCase(), url, environment.HUB_CLIENT_ID];
      }),
    );
    for (const index of [0, 1, 2]) {
      expect(new Set(seen.map((each) => each[index])).size).toBe(twins.length);
    }
    const loud = await hub.logIn('ANN');
    expect((await loud.open(`${hub.url}user/ann/`)).status).toBe(200);
  });
});
