import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import {
  createServerHub,
  createUsers,
  fixtureApp,
  guarded,
  serverPath,
  startUntilReady,
  submitFormTo,
  tokenOf,
} from '../support/server-hub.ts';
import {
  managedService,
  openWithConsent,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';

// Login fixation: a link carries a token of the attacker, so that what its reader types ends up in the attacker's
// account. Mail programs, QR codes and bookmarks send Sec-Fetch-Site: none; on plain http there is none at all.

const sites = ['none', 'same-origin', 'same-site', 'cross-site', undefined];

let hub: TestHub;
let evilToken: string;

beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      load_roles: [
        ...usersOpenServices,
        { name: 'shared', scopes: ['access:servers!server=victim/'], users: ['evil'] },
      ],
      services: [
        await managedService('wiki', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
      ],
    },
    Spawner: { access: 'server', cmd: guarded(...fixtureApp('gateway-app')) },
  });
  await createUsers(hub, 'victim', 'evil');
  await startUntilReady(hub, serverPath('victim'));
  await untilState(hub, 'wiki', 'ready');
  evilToken = await tokenOf(hub, 'evil');
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** Follows a link as a browser does that says where it stood, or does not. */
async function follow(
  browser: FakeBrowser,
  url: string,
  site: string | undefined,
): Promise<string> {
  const headers = site === undefined ? {} : { 'sec-fetch-site': site };
  let answer = await browser.request(url, { headers });
  for (let hop = 0; hop < 10 && answer.headers.location !== undefined; hop += 1) {
    answer = await browser.request(new URL(answer.headers.location, answer.url).href, { headers });
  }
  return answer.body;
}

const userSeenIn = (body: string) =>
  (JSON.parse(body) as { headers: Record<string, string> }).headers['x-hub-user'];

describe.each([
  ['a guarded service', 'services/wiki/'],
  ['a server that checks visitors itself', 'user/victim/'],
])('a link with a token of the attacker to %s', (_name, path) => {
  test.each(sites)('leaves its reader logged in as before (Sec-Fetch-Site: %s)', async (site) => {
    const victim = await hub.logIn('victim');
    const url = `${hub.url}${path}`;
    expect(userSeenIn((await openWithConsent(victim, url)).body)).toBe('victim');
    expect(userSeenIn(await follow(victim, `${url}page?token=${evilToken}`, site))).toBe('victim');
    expect(userSeenIn((await victim.open(url)).body)).toBe('victim');
  });

  test.each(sites)('makes no reader the attacker unasked (Sec-Fetch-Site: %s)', async (site) => {
    for (const reader of [await hub.logIn('victim'), undefined]) {
      if (reader === undefined && path.startsWith('user/')) continue;
      const browser = reader ?? new FakeBrowser();
      const body = await follow(browser, `${hub.url}${path}page?token=${evilToken}`, site);
      expect(body).not.toMatch(/"x-hub-user":"evil"/);
      expect(
        browser.cookieNames().filter((name) => /^(?:service-wiki|hub-user-victim)$/.test(name)),
      ).toEqual(body.startsWith('{') ? ['hub-user-victim'] : []);
    }
  });
});

test('the reader of a link may continue as the user of its token, where a service is guarded', async () => {
  const browser = new FakeBrowser();
  const asked = await browser.open(`${hub.url}services/wiki/page?token=${evilToken}`);
  expect(asked.body).toContain('Continue as evil?');
  const answer = await submitFormTo(browser, asked, /oauth_callback/);
  expect(answer.headers.location).toBe('/services/wiki/page');
  expect(userSeenIn((await browser.open(`${hub.url}services/wiki/`)).body)).toBe('evil');
});
