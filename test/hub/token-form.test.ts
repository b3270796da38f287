import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { fieldsWithFocus, submitTo } from '../support/pages.ts';
import {
  createTestHub,
  submitForm,
  submitLogin,
  type TestHub,
  unescapeHtml,
} from '../support/test-hub.ts';

const adminToken = 'admin-service-token';
const staff = Array.from({ length: 200 }, (_, index) => `lab-${String(index).padStart(3, '0')}`);

let hub: TestHub;
let ada: FakeBrowser;

beforeAll(async () => {
  hub = await createTestHub({
    Authenticator: { allow_all: true, admin_users: ['root'] },
    Hub: {
      custom_scopes: { 'custom:lab:book': { description: 'Book a seat.', subscopes: [] } },
      services: staff.map((name) => ({
        name,
        url: 'http://127.0.0.1:9',
        info: { title: `Lab ${name.slice(4)}` },
      })),
      load_groups: [
        { name: 'team', users: ['ada', 'bob'] },
        { name: 'leads', users: ['ada'] },
      ],
      load_roles: [
        {
          name: 'labs',
          groups: ['team'],
          scopes: ['custom:lab:book', ...staff.map((name) => `access:services!service=${name}`)],
        },
        { name: 'lead', groups: ['leads'], scopes: ['servers!group=team'] },
      ],
    },
  });
  ada = await hub.logIn('ada');
});
afterAll(() => hub[Symbol.asyncDispose]());

type Fields = readonly (readonly [name: string, value: string])[];

/** Sends the form for a token, with names that stand in it several times. */
async function send(
  browser: FakeBrowser,
  fields: Fields,
  headers: Record<string, string> = {},
  /** Who was shown the page with the form. */
  reader = browser,
) {
  const page = await reader.request(`${hub.url}hub/account`);
  const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
  return browser.request(`${hub.url}hub/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams([
      ['_csrf', csrf],
      ...fields.map(([name, value]) => [name, value]),
    ] as [string, string][]).toString(),
  });
}

/** What the token shown on a page may do at this moment. */
async function scopesOf(browser: FakeBrowser, fields: Fields): Promise<string[]> {
  const made = await send(browser, fields);
  expect(made.status).toBe(303);
  const page = await browser.follow(made);
  const token = unescapeHtml(/<code class="secret"[^>]*>([^<]+)</.exec(page.body)?.[1] ?? '');
  const user = await hub.api('/user', token);
  return ((await user.json()) as { scopes: string[] }).scopes;
}

const tokenCount = async (name: string) => {
  const answer = await hub.api(`/users/${name}/tokens`, adminToken);
  return ((await answer.json()) as { api_tokens: unknown[] }).api_tokens.length;
};

test('a token may do what was ticked and nothing else', async () => {
  const page = await ada.request(`${hub.url}hub/account`);
  expect(page.body).toContain('Start, stop and read your servers');
  expect(page.body).toContain('Book a seat');
  expect(
    await scopesOf(ada, [
      ['may', 'choose'],
      ['scope', 'read:tokens!user'],
      ['scope', 'custom:lab:book'],
    ]),
  ).toEqual(['custom:lab:book', 'read:tokens!user=ada']);
  expect(await scopesOf(ada, [['may', 'identify']])).toEqual([
    'read:users:groups!user=ada',
    'read:users:name!user=ada',
  ]);
  expect(
    await scopesOf(ada, [
      ['may', 'choose'],
      ['scope', 'start:servers'],
      ['reach', 'user'],
      ['reach_name', 'bob'],
    ]),
  ).toEqual(['start:servers!user=bob']);
});

test.each<[string, Fields]>([
  ['a scope of administrators', [['scope', 'admin:users']]],
  ['a scope without its filter', [['scope', 'servers']]],
  ['the account of another', [['scope', 'tokens!user=root']]],
  [
    'another group',
    [
      ['scope', 'servers'],
      ['reach', '!group=leads'],
    ],
  ],
  [
    'another user by name',
    [
      ['scope', 'servers'],
      ['reach', 'user'],
      ['reach_name', 'root'],
    ],
  ],
  [
    'a filter within the name',
    [
      ['scope', 'servers'],
      ['reach', 'user'],
      ['reach_name', 'bob!user=root'],
    ],
  ],
  ['a scope of services only', [['scope', 'gateway']]],
  ['a service that is not theirs', [['scope', 'access:services!service=admin']]],
  ['what no one knows', [['scope', 'read:planets']]],
  ['typed text', [['scopes', 'shutdown']]],
])('forged values give nothing beyond what is held: %s', async (_what, fields) => {
  const before = await tokenCount('ada');
  const answer = await send(ada, [['may', 'choose'], ['note', 'Forged'], ...fields]);
  expect(answer.status).toBe(400);
  expect(answer.body).toMatch(/more than you may do|unknown or malformed/);
  expect(answer.body).toContain('value="Forged"');
  expect(await tokenCount('ada')).toBe(before);
});

test('ticks beside another choice are a question, not a token that may do everything', async () => {
  const answer = await send(ada, [
    ['may', 'everything'],
    ['scope', 'read:tokens!user'],
  ]);
  expect(answer.status).toBe(400);
  expect(answer.body).toMatch(/value="read:tokens!user" checked/);
});

test('an error names what is unknown, what is not held and what was meant, and keeps it all', async () => {
  const answer = await send(ada, [
    ['may', 'choose'],
    ['scope', 'read:tokens!user'],
    ['scopes', 'read:user:name!user servers'],
  ]);
  expect(answer.status).toBe(400);
  const text = unescapeHtml(answer.body);
  expect(text).toContain('The scope "read:user:name!user" is unknown or malformed.');
  expect(text).toContain('The scope "servers" is more than you may do.');
  expect(text).toContain('Did you mean "read:users:name!user"?');
  expect(text).toContain('"servers!group=team"');
  expect(answer.body).toContain('value="read:user:name!user servers"');
  expect(answer.body).toMatch(/value="read:tokens!user" checked/);
});

test('many services are found by name, and what is ticked stays ticked', async () => {
  const page = await ada.request(`${hub.url}hub/account`);
  expect(page.body).toContain('Open Lab 000 as you');
  expect(page.body).not.toContain('Open Lab 150 as you');
  expect(page.body).toContain('Find them by name.');
  const found = await send(ada, [
    ['may', 'choose'],
    ['scope', 'access:services!service=lab-029'],
    ['service_search', 'lab 15'],
    ['find', 'services'],
  ]);
  expect(found.status).toBe(200);
  expect(found.body).toContain('Open Lab 150 as you');
  expect(found.body).not.toContain('Open Lab 000 as you');
  expect(found.body).toMatch(/value="access:services!service=lab-029" checked/);
});

test('the page stays below 100 KiB with its style sheet, with 100 tokens and 200 services', async () => {
  const root = await hub.logIn('root');
  await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      hub.api('/users/root/tokens', adminToken, {
        method: 'POST',
        body: JSON.stringify({
          note: `Token ${index}`,
          scopes: staff.slice(0, 40).map((name) => `access:services!service=${name}`),
        }),
      }),
    ),
  );
  const page = await root.request(`${hub.url}hub/account`);
  expect(page.body).toContain('of 100');
  const styles = await root.request(
    new URL(/href="([^"]+site[^"]+css)"/.exec(page.body)?.[1] ?? '', hub.url).href,
  );
  expect(Buffer.byteLength(page.body) + Buffer.byteLength(styles.body)).toBeLessThan(100 * 1024);
  expect(gzipSync(page.body).length).toBeLessThan(20 * 1024);
  const last = await root.request(`${hub.url}hub/account?before=`);
  expect(last.body).toContain('10 of 100');
  expect(last.body).not.toContain('rel="next"');
  // Tokens that are revoked meanwhile move none past the edge of a page.
  const notes = ({ body }: { readonly body: string }) =>
    [...body.matchAll(/aria-label="Revoke the token Token (\d+)"/g)].map(([, note]) => note);
  const urlOf = ({ body }: { readonly body: string }, rel: 'next' | 'prev') => {
    const [, path = ''] = new RegExp(`href="([^"]+)" rel="${rel}"`).exec(body) ?? [];
    return new URL(unescapeHtml(path), hub.url).href;
  };
  const second = await root.request(urlOf(page, 'next'));
  const revoked = await submitTo(root, page, '/hub/token/revoke');
  expect(revoked.status).toBe(303);
  const again = await root.request(urlOf(page, 'next'));
  expect(notes(again)).toEqual(notes(second));
  expect(new Set([...notes(page), ...notes(again)])).toHaveProperty('size', 20);
  const back = await root.request(urlOf(await root.request(urlOf(again, 'next')), 'prev'));
  expect(notes(back)).toEqual(notes(second));
});

test('a login that has ended meanwhile loses nothing that was typed, and makes no token by itself', async () => {
  const fields: Fields = [
    ['note', 'Nightly report'],
    ['expires_in', '604800'],
    ['may', 'choose'],
    ['scope', 'read:tokens!user'],
    ['scope', 'access:services!service=lab-199'],
  ];
  const gone = new FakeBrowser();
  const referer = `${hub.url}hub/token`;
  const sent = await send(gone, fields, { referer }, await hub.logIn('bob'));
  expect(sent.status).toBe(303);
  const before = await tokenCount('bob');
  const next = new URL(sent.headers.location ?? '', hub.url).searchParams.get('next') ?? '';
  await submitLogin(gone, hub.url, 'bob', 'test', next);
  const page = await gone.request(new URL(next, hub.url).href);
  expect(page.body).toContain('value="Nightly report"');
  expect(page.body).toMatch(/value="604800" selected/);
  expect(page.body).toMatch(/value="read:tokens!user" checked/);
  expect(page.body).toMatch(/value="access:services!service=lab-199" checked/);
  expect(await tokenCount('bob')).toBe(before);
  expect(
    (
      await submitForm(
        gone,
        { ...page, body: page.body.slice(page.body.indexOf('<form class="fields new-token')) },
        Object.fromEntries(fields),
      )
    ).status,
  ).toBe(303);

  const forged = await send(new FakeBrowser(), fields, { 'sec-fetch-site': 'cross-site' });
  expect(forged.status).toBe(403);
});

test.each([
  [[['may', 'choose']], 'may'],
  [
    [
      ['may', 'choose'],
      ['scopes', 'no:such-scope'],
    ],
    'scopes',
  ],
  [
    [
      ['may', 'choose'],
      ['scopes', 'admin:users'],
    ],
    'scopes',
  ],
] as const)('what is wrong with %j is said beside the field', async (fields, name) => {
  const refused = await send(ada, [['note', ''], ['expires_in', '3600'], ...fields]);
  expect([refused.status, fieldsWithFocus(refused.body)]).toEqual([
    expect.toSatisfy((status) => [400, 403].includes(status)),
    [name],
  ]);
  expect(refused.body).toContain('class="problem"');
});
