import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { managedService, openWithConsent, untilState } from '../support/services.ts';
import { createTestHub, type TestHub, type TestHubConfig } from '../support/test-hub.ts';

let hub: TestHub;
let appUrl: string;
let config: TestHubConfig;

const opensApp = (users: string[]) => ({ name: 'opens-app', scopes: ['access:services'], users });

beforeAll(async () => {
  config = {
    Hub: {
      load_groups: [{ name: 'team', users: ['grace', 'heidi'] }],
      load_roles: [
        { name: 'user', scopes: ['self'] },
        opensApp(['alice', 'bob', 'carol', 'dave', 'erin']),
        { name: 'team-opens-app', scopes: ['access:services'], groups: ['team'] },
      ],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
      ],
    },
  };
  hub = await createTestHub(config);
  appUrl = `${hub.url}services/app/`;
  await untilState(hub, 'app', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

/** A browser whose right to open the app was looked up, and is remembered. */
async function knownVisitor(userName: string): Promise<FakeBrowser> {
  const browser = await hub.logIn(userName);
  expect((await openWithConsent(browser, appUrl)).status).toBe(200);
  expect(await statusOf(browser)).toBe(200);
  expect(await statusOf(browser)).toBe(200);
  return browser;
}

/** What a script in the page of the app gets. */
async function statusOf(browser: FakeBrowser): Promise<number> {
  return (await browser.request(appUrl, { headers: { 'sec-fetch-mode': 'cors' } })).status;
}

const administer = async (path: string, method: string, body?: object) => {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const answer = await hub.api(path, 'admin-service-token', init);
  expect(answer.ok).toBe(true);
  return answer;
};

describe('a right that is remembered is gone with the answer to', () => {
  const losses: [string, string, number, (browser: FakeBrowser) => Promise<unknown>][] = [
    ['the logout', 'alice', 401, (browser) => browser.request(`${hub.url}hub/logout`)],
    [
      'the revocation of the token',
      'carol',
      401,
      async () => {
        const answer = await administer('/users/carol/tokens', 'GET');
        const { oauth_tokens, api_tokens } = (await answer.json()) as Record<
          string,
          { id: string; oauth_client?: string }[] | undefined
        >;
        for (const { id, oauth_client } of [...(oauth_tokens ?? []), ...(api_tokens ?? [])]) {
          if (oauth_client !== undefined) await administer(`/users/carol/tokens/${id}`, 'DELETE');
        }
      },
    ],
    ['the deletion of the user', 'dave', 401, () => administer('/users/dave', 'DELETE')],
    [
      'the loss of the role',
      'erin',
      403,
      () =>
        hub.reload({
          Hub: {
            ...config.Hub,
            load_roles: [
              { name: 'user', scopes: ['self'] },
              opensApp(['alice', 'bob', 'carol']),
              { name: 'team-opens-app', scopes: ['access:services'], groups: ['team'] },
            ],
          },
        }),
    ],
    [
      'the loss of the group',
      'grace',
      403,
      () => administer('/groups/team/users', 'DELETE', { users: ['grace'] }),
    ],
  ];

  test.each(losses)('%s, and others keep theirs', async (_, userName, status, lose) => {
    const [losing, staying] = [await knownVisitor(userName), await knownVisitor('bob')];
    await lose(losing);
    expect(await statusOf(losing)).toBe(status);
    expect(await statusOf(staying)).toBe(200);
  });
});
