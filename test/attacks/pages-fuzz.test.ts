import { env } from 'node:process';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import { hasPostgres } from '../support/postgres.ts';
import { createTestHub, submitLogin, type TestHub } from '../support/test-hub.ts';
import { createRandom } from './request-mutator.ts';

/** Further runs by hand: HUB_FUZZ_SEED=7 HUB_FUZZ_CASES=20000 npx vitest run test/attacks/pages-fuzz.test.ts */
const seed = Number(env['HUB_FUZZ_SEED'] ?? 5);
const cases = Number(env['HUB_FUZZ_CASES'] ?? 300);
const admin = 'admin-service-token';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

interface Form {
  readonly page: string;
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

// The stricter of the databases, where there is one: it has numbers that are too large, and texts that are none.
const cluster = hasPostgres() ? usePostgres() : undefined;
let hub: TestHub;
let browser: FakeBrowser;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      ...(cluster && { database_url: await cluster().createDatabase() }),
      ...serversInHub.Hub,
      allow_named_servers: true,
      services: [
        { name: 'wiki', url: 'http://127.0.0.1:9/', info: { title: 'Wiki', group: 'Texts' } },
        { name: 'other', url: 'http://127.0.0.1:11/' },
      ],
      load_groups: [{ name: 'team', users: ['bob'] }],
      load_roles: [{ name: 'sharing', scopes: ['shares!user'], groups: ['team'] }],
    },
    Authenticator: { admin_users: ['ada'] },
    Spawner: serversInHub.Spawner,
  });
  const post = (path: string, body: unknown, method = 'POST') =>
    hub.api(path, admin, { method, body: JSON.stringify(body) });
  await post('/users', { usernames: ['ada', 'bob', 'cleo'] });
  await post('/users/ada/servers/lab', {}, 'PUT');
  await post('/groups/crew', { users: ['bob', 'cleo'] });
  await post('/roles/helpers', { scopes: ['list:users'] });
  await post('/roles/helpers/assignments', { users: ['cleo'], groups: ['crew'] });
  await post('/services/added', { url: 'http://127.0.0.1:13/' });
  await post('/users/ada/tokens', { note: 'one' });
  await post('/shares/ada/lab', { user: 'bob' });
  browser = await logIn();
});
afterAll(() => hub[Symbol.asyncDispose]());

async function logIn(): Promise<FakeBrowser> {
  const fresh = new FakeBrowser();
  await submitLogin(fresh, hub.url, 'ada', 'test');
  return fresh;
}

/** Where a page of a list could begin, in the forms that the lists of the hub have for it. */
const oddEdges = [
  '9'.repeat(15),
  `${'9'.repeat(15)},x`,
  `${'9'.repeat(15)},${'9'.repeat(15)}`,
  `${'9'.repeat(7)}.${'9'.repeat(7)}.1,x`,
  '1,\0',
  'user:\0',
];

const odd = [
  ...oddEdges,
  '',
  ' ',
  '0',
  '-1',
  '2',
  '1e9',
  '‮evil',
  'zoë',
  'e\u0301',
  '%',
  '../..',
  '//evil.example',
  '__proto__',
  'toString',
  'x'.repeat(400),
  '2026-02-30T25:61:61Z',
  '-created',
  'server',
  'activity',
  'failed',
  'before',
  'team',
  'bob',
];

const parameters = [
  ...['search', 'group', 'show', 'sort', 'size', 'after', 'before', 'offset'],
  ...['apps_page', 'apps_after', 'apps_before', 'actor', 'target', 'action', 'result', 'since'],
  ...['until', 'span', 'next', 'profile', 'note', 'scopes', 'ticked', 'service_search', 'code'],
];

function elementsIn(node: Node): Element[] {
  if (!('childNodes' in node)) return [];
  return node.childNodes.flatMap((child) => [
    ...('tagName' in child ? [child] : []),
    ...elementsIn(child),
  ]);
}

function attribute({ attrs }: Element, name: string): string | undefined {
  return attrs.find((each) => each.name === name)?.value;
}

/** Ends the login, or the hub; a form of another window is sent to all the others. */
const left = /\/hub\/(?:logout|static|api)\b|shut-?down/;

/** Every page, every way that one lists or shows its content, and every form that an administrator gets to. */
async function explore() {
  const pages = new Map<string, string>();
  const ways = new Set<string>();
  const forms = new Map<string, Form>();
  const waiting = [`${hub.url}hub/home`];
  for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
    const answer = await browser.open(url);
    expectNoFailure(answer, url);
    if (!String(answer.headers['content-type']).startsWith('text/html')) continue;
    const elements = elementsIn(parse(answer.body));
    for (const link of elements.filter(({ tagName }) => tagName === 'a')) {
      const target = new URL(attribute(link, 'href') ?? '', answer.url);
      const isHere = target.href.startsWith(`${hub.url}hub/`) && !left.test(target.pathname);
      if (isHere && target.search !== '' && ways.size < 100) ways.add(target.href);
      if (!isHere || pages.has(target.pathname) || pages.size > 150) continue;
      pages.set(target.pathname, target.href);
      waiting.push(target.href);
    }
    for (const form of elements.filter(({ tagName }) => tagName === 'form')) {
      if (attribute(form, 'method') !== 'post') continue;
      const inner = elementsIn(form);
      const actions = [form, ...inner].map((each) =>
        attribute(each, each === form ? 'action' : 'formaction'),
      );
      const fields = inner.flatMap((each): [string, string][] => {
        const name = attribute(each, 'name');
        return name === undefined ? [] : [[name, attribute(each, 'value') ?? '']];
      });
      for (const action of actions) {
        if (action === undefined) continue;
        const path = new URL(action, answer.url).pathname;
        const key = `${path} ${fields.map(([name]) => name).join()}`;
        if (!left.test(path) && !forms.has(key)) forms.set(key, { page: answer.url, path, fields });
      }
    }
  }
  return { pages: [...pages.values()], ways: [...ways], forms: [...forms.values()] };
}

function expectNoFailure({ status, body }: BrowserAnswer, what: string): void {
  expect(status, `seed ${seed}, ${what}\n${body.slice(0, 3_000)}`).not.toBe(500);
}

test('whatever stands in an address or is sent by a form, no page fails', {
  timeout: 900_000 + cases * 100,
}, async () => {
  const random = createRandom(seed);
  const { pages, ways, forms } = await explore();
  expect(pages.length).toBeGreaterThan(30);
  expect(ways.length).toBeGreaterThan(20);
  expect(forms.length).toBeGreaterThan(20);

  for (const way of ways) {
    for (const edge of oddEdges) {
      const url = new URL(way);
      url.searchParams.set(random.pick(['after', 'before']), edge);
      expectNoFailure(await browser.request(url.href), url.href);
    }
  }

  for (let index = 0; index < cases * 0.7; index += 1) {
    const url = new URL(pages[index % pages.length] as string);
    for (let count = 1 + random.below(4); count > 0; count -= 1) {
      url.searchParams.append(random.pick(parameters), random.pick(odd));
    }
    expectNoFailure(await browser.request(url.href), url.href);
  }

  for (let index = 0; index < cases * 0.3; index += 1) {
    const { page, path, fields } = forms[index % forms.length] as Form;
    const sent = new URLSearchParams();
    for (const [name, value] of fields) {
      const isOdd = name !== '_csrf' && random.chance(0.4);
      if (random.chance(0.95)) sent.append(name, isOdd ? random.pick(odd) : value);
    }
    const answer = await browser.request(new URL(path, hub.url).href, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', referer: page },
      body: sent.toString(),
    });
    expectNoFailure(answer, `${path} ${sent}`);
    // Some forms end logins.
    if (answer.headers.location?.includes('/hub/login')) browser = await logIn();
  }
  expect((await hub.api('/users', admin)).status).toBe(200);
});
