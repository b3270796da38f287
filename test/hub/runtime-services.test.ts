import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { submitMain } from '../support/pages.ts';
import { createPasswordHub, passwordHubConfig, testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import { openWithConsent, projectDirectory } from '../support/services.ts';
import { type TestHub, type TestHubConfig, unescapeHtml, until } from '../support/test-hub.ts';

let hub: TestHub;
let config: TestHubConfig;
/** A web server that says whose request it was. */
let app: Server;
let appUrl: string;
/** Of a user who administers services and little else. */
let eve: string;

beforeAll(async () => {
  app = createServer((request, response) => {
    response.setHeader('X-App', String(request.headers['x-key']));
    response.end(`hello ${request.headers['x-hub-user'] ?? 'stranger'} at ${request.url}`);
  });
  await new Promise<void>((resolve) => {
    app.listen(0, '127.0.0.1', resolve);
  });
  appUrl = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  config = passwordHubConfig({
    Hub: {
      load_roles: [
        { name: 'user', scopes: ['self', 'access:services!service=run-page'] },
        { name: 'service-admin', scopes: ['admin:services', 'read:hub'], users: ['eve'] },
      ],
      services: [
        { name: 'fixed', url: 'http://127.0.0.1:9', api_token: 'fixed-service-token' },
        { name: 'other', api_token: 'other-service-token', oauth_client_id: 'service-special' },
      ],
    },
  });
  hub = await createPasswordHub(['ada', 'bob', 'eve'], config);
  eve = await tokenOf(hub, 'eve');
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  app.close();
});

interface ServiceModel {
  readonly name: string;
  readonly url: string | null;
  readonly source: string;
  readonly ready: boolean;
  readonly api_token?: string;
  readonly message: string;
  readonly hint?: string;
}

async function ask(
  method: string,
  name: string,
  body?: object,
  { token = adminToken, headers = {} }: { token?: string; headers?: Record<string, string> } = {},
) {
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const answer = await hub.api(`/services/${name}`, token, init);
  const text = await answer.text();
  return {
    status: answer.status,
    etag: answer.headers.get('etag') ?? '',
    body: (text === '' ? {} : JSON.parse(text)) as ServiceModel,
  };
}
const statusOf = async (...request: Parameters<typeof ask>) => (await ask(...request)).status;
const whoami = async (token: string | undefined) => {
  const answer = await hub.api('/user', token);
  return {
    status: answer.status,
    ...((await answer.json()) as { name?: string; scopes?: string[] }),
  };
};
const restarts = () => hub.logLines.filter(({ msg }) => msg === 'service is ready').length;
const untilReady = (name: string) =>
  until(async () => (await ask('GET', name)).body.ready, `the service ${name} is ready`);

describe('as scripts for JupyterHub expect:', () => {
  test('a service is added with 201 and deleted with 200', async () => {
    const made = await ask('POST', 'jh-new');
    expect([made.status, made.body.name, made.body.source]).toEqual([201, 'jh-new', 'api']);
    expect(await statusOf('POST', 'jh-new')).toBe(409);
    expect(await statusOf('DELETE', 'jh-new')).toBe(200);
    expect(await statusOf('DELETE', 'jh-new')).toBe(404);
  });

  test('without the scope it is 403, with a name that is taken 409', async () => {
    expect(await statusOf('POST', 'jh-none', {}, { token: await tokenOf(hub, 'bob') })).toBe(403);
    const taken = await ask('POST', 'fixed', {});
    expect([taken.status, taken.body.message]).toEqual([409, 'Service fixed already exists']);
  });

  test('a managed one is 400', async () => {
    const { status, body } = await ask('POST', 'jh-managed', { command: ['sleep', '1'] });
    expect([status, body.message]).toEqual([
      400,
      'Can not create managed service jh-managed at runtime',
    ]);
  });

  test('an administrator, or scopes for its users, need the same of the caller, else 400', async () => {
    const admin = { admin: true, api_token: 'some-admin-token' };
    expect(await statusOf('POST', 'jh-admin', admin, { token: eve })).toBe(400);
    expect(await statusOf('POST', 'jh-admin', admin)).toBe(201);
    expect((await whoami('some-admin-token')).name).toBe('jh-admin');
    const scopes = { oauth_client_allowed_scopes: ['admin:users'] };
    expect(await statusOf('POST', 'jh-scopes', scopes, { token: eve })).toBe(400);
    expect(await statusOf('POST', 'jh-scopes', scopes)).toBe(201);
  });

  test('one of the configuration is not modifiable: 405', async () => {
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', { display: false }],
      ['PUT', {}],
    ] as const) {
      const answer = await ask(method, 'fixed', body);
      expect([method, answer.status, answer.body.message]).toEqual([
        method,
        405,
        'Service fixed is not modifiable at runtime',
      ]);
      expect(answer.body.hint).toContain('Hub.services');
    }
  });
});

describe('a service', () => {
  test('is routed, guarded and known by its token at once, and gone when it is deleted', async () => {
    const made = await ask('POST', 'run-page', { url: appUrl, access: 'gateway' });
    const { api_token: token } = made.body;
    expect([made.status, await whoami(token)]).toMatchObject([201, { name: 'run-page' }]);
    expect((await ask('GET', 'run-page')).body.api_token).toBeUndefined();
    await untilReady('run-page');
    const bob = await hub.logIn('bob', testPassword);
    const clientsOfBob = async () =>
      JSON.stringify(await (await hub.api('/users/bob/tokens', adminToken)).json());
    const page = `${hub.url}services/run-page/x`;
    expect((await openWithConsent(bob, page)).body).toBe('hello bob at /services/run-page/x');

    expect(await clientsOfBob()).toContain('service-run-page');
    expect(await statusOf('DELETE', 'run-page')).toBe(200);
    expect((await bob.request(page)).status).toBe(404);
    expect((await whoami(token)).status).toBe(403);
    // What users allowed it is not for the next one of that name.
    expect(await clientsOfBob()).not.toContain('service-run-page');
  });

  test('is the same after PUT twice, which restarts nothing', async () => {
    const body = { url: appUrl, info: { a: 1, b: [2] }, api_token: 'a-token-of-mine' };
    expect(await statusOf('PUT', 'run-put', body)).toBe(201);
    await untilReady('run-put');
    const [before, etag] = [restarts(), (await ask('PUT', 'run-put', body)).etag];
    const { api_token, ...withoutToken } = body;
    const again = await ask('PUT', 'run-put', withoutToken);
    expect([again.status, again.etag, restarts()]).toEqual([200, etag, before]);
    expect((await whoami(api_token)).name).toBe('run-put');
    const changed = await ask('PUT', 'run-put', { ...body, display: false });
    expect([changed.status, changed.etag === etag]).toEqual([200, false]);
  });

  test('is changed by PATCH, where another token ends the one before', async () => {
    await ask('POST', 'run-patch', { api_token: 'former-token', display: false });
    const { status, body } = await ask('PATCH', 'run-patch', {
      api_token: 'latter-token',
      info: { title: 'Mine' },
    });
    expect([status, body]).toMatchObject([200, { display: false, info: { title: 'Mine' } }]);
    expect((await whoami('former-token')).status).toBe(403);
    expect((await whoami('latter-token')).name).toBe('run-patch');
    expect((await ask('PATCH', 'run-patch', { info: null })).body).toMatchObject({ info: {} });
  });

  test('is kept over reloads and restarts', async () => {
    await ask('POST', 'run-kept', { api_token: 'token-that-is-kept' });
    await hub.reload(config);
    expect((await whoami('token-that-is-kept')).name).toBe('run-kept');
    hub = await hub.restart();
    expect((await whoami('token-that-is-kept')).name).toBe('run-kept');
    expect((await ask('GET', 'run-kept')).body.source).toBe('api');
  });

  test('of which two are added or changed at once is one of them', async () => {
    const both = (method: string, headers?: Record<string, string>) =>
      Promise.all(
        ['one', 'two', 'three'].map((title) =>
          statusOf(method, 'run-race', { info: { [method]: title } }, headers && { headers }),
        ),
      );
    expect((await both('POST')).sort()).toEqual([201, 409, 409]);
    const { etag } = await ask('PATCH', 'run-race', {});
    const statuses = await both('PATCH', { 'if-match': etag });
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409 || status === 412)).toHaveLength(2);
  });
});

test.skipIf(!requires('curl'))('the commands of the documentation do what they say', async () => {
  const page = join(projectDirectory, 'docs', 'how-to', 'write-a-service.md');
  const blocks = (await readFile(page, 'utf8')).matchAll(/```sh\n([\s\S]*?)```/g);
  const commands = [...blocks].map(([, text = '']) => text).find((text) => text.includes('PUT'));
  const { stdout } = await promisify(execFile)('sh', ['-ec', commands ?? 'false'], {
    env: { ...process.env, HUB_API_TOKEN: adminToken, HUB_API_URL: hub.apiUrl },
  });
  expect(stdout).toMatch(/"api_token":"hub_.*"display":false/s);
  expect(await statusOf('GET', 'gallery')).toBe(404);
});

describe('bad input:', () => {
  const hubAddress = () => new URL(hub.apiUrl).origin;

  test.each<[string, string, () => object, number, string]>([
    ['a name that cannot be in a URL', 'a%20b', () => ({}), 400, 'name'],
    ['an unknown member', 'bad-a', () => ({ adress: 'x' }), 400, 'adress'],
    ['a URL that is none', 'bad-b', () => ({ url: 'ftp://x' }), 400, 'url'],
    ['an address of the hub', 'bad-c', () => ({ url: hubAddress() }), 400, 'the hub itself'],
    [
      'an address of the hub by another name',
      'bad-d',
      () => ({ url: hubAddress().replace('127.0.0.1', 'localhost') }),
      400,
      'the hub itself',
    ],
    [
      'where clouds keep secrets',
      'bad-e',
      () => ({ url: 'http://169.254.169.254/' }),
      400,
      'link-local',
    ],
    ['the same in other digits', 'bad-f', () => ({ url: 'http://2852039166/' }), 400, 'link-local'],
    ['the same over IPv6', 'bad-f', () => ({ url: 'http://[fd00:ec2::254]/' }), 400, 'link-local'],
    [
      'the hub in an IPv6 address',
      'bad-d',
      () => ({ url: hubAddress().replace('127.0.0.1', '[::ffff:127.0.0.1]') }),
      400,
      'the hub itself',
    ],
    [
      'the hub by a whole name',
      'bad-d',
      () => ({ url: hubAddress().replace('127.0.0.1', 'localhost.') }),
      400,
      'the hub itself',
    ],
    ['a token that is too short', 'bad-g', () => ({ api_token: '12345678' }), 400, 'api_token'],
    ['a token in use', 'bad-h', () => ({ api_token: 'other-service-token' }), 409, 'api_token'],
    [
      'a client id in use',
      'bad-i',
      () => ({ oauth_client_id: 'service-special' }),
      409,
      'client id',
    ],
    [
      'a client id of another name',
      'bad-j',
      () => ({ oauth_client_id: 'service-fixed' }),
      409,
      'client id',
    ],
    [
      'a client id of a server',
      'bad-k',
      () => ({ oauth_client_id: 'hub-user-ada' }),
      400,
      'oauth_client_id',
    ],
    [
      'a scope that there is not',
      'bad-l',
      () => ({ oauth_client_allowed_scopes: ['x'] }),
      400,
      'no scope',
    ],
    [
      'a secret from a file',
      'bad-m',
      () => ({ api_token: { file: '/etc/passwd' } }),
      400,
      'api_token',
    ],
    [
      'an environment without a command',
      'bad-n',
      () => ({ environment: { A: 'b' } }),
      400,
      'environment',
    ],
    [
      'a rule that cannot match',
      'bad-p',
      () => ({
        url: 'http://127.0.0.1:9',
        access: 'gateway',
        rules: [{ paths: ['/a/*'] }, { paths: ['/a/b'], allow: 'nobody' }],
      }),
      400,
      'rules[1]: can never match: rules[0] before it matches all of it.',
    ],
    [
      'more than it may hold',
      'bad-o',
      () => ({ info: { a: 'x'.repeat(70_000) } }),
      400,
      'characters',
    ],
  ])('%s', async (_what, name, body, status, part) => {
    const answer = await ask('POST', name, body());
    expect([answer.status, answer.body.message]).toEqual([status, expect.stringContaining(part)]);
    expect(await statusOf('GET', name)).toBe(404);
  });

  test('a token that another one of the kind has, of which only the hash is kept', async () => {
    await ask('POST', 'taken-token', { api_token: 'taken-by-the-first' });
    const answer = await ask('POST', 'taken-second', { api_token: 'taken-by-the-first' });
    expect(answer.status).toBe(409);
    expect(answer.body.message).not.toContain('taken-by-the-first');
  });
});

describe('who administers services and little else', () => {
  const as = {
    get token() {
      return eve;
    },
  };

  test('adds one that may do nothing', async () => {
    expect(await statusOf('POST', 'eves', { info: {} }, as)).toBe(201);
    expect(await statusOf('PATCH', 'eves', { display: false }, as)).toBe(200);
    expect(await statusOf('DELETE', 'eves', undefined, as)).toBe(200);
  });

  test('reaches no address through the hub, where servers of others listen', async () => {
    const { status, body } = await ask('POST', 'eves-way', { url: appUrl, access: 'public' }, as);
    expect([status, body.hint]).toEqual([403, expect.stringContaining('access:servers')]);
    await ask('POST', 'plain-one', {});
    expect(await statusOf('PATCH', 'plain-one', { url: appUrl }, as)).toBe(403);
    expect(await statusOf('PUT', 'plain-one', { url: appUrl }, as)).toBe(403);
  });

  test('asks users for nothing, and never in their place', async () => {
    for (const body of [
      { oauth_client_allowed_scopes: ['self'] },
      { oauth_client_allowed_scopes: ['servers!user'] },
      { oauth_client_allowed_scopes: ['inherit'] },
      { oauth_no_confirm: true },
      { command: ['sleep', '1'] },
    ]) {
      expect([body, await statusOf('POST', 'eves-client', body, as)]).toEqual([body, 400]);
    }
  });

  test('takes over no service that may do more, by its roles, its flag or its client', async () => {
    await ask('POST', 'by-role', { api_token: 'token-of-by-role' });
    const give = { method: 'POST', body: JSON.stringify({ services: ['by-role'] }) };
    await hub.api('/roles/strong-bot', adminToken, {
      method: 'POST',
      body: JSON.stringify({ scopes: ['shutdown'] }),
    });
    await hub.api('/roles/strong-bot/assignments', adminToken, give);
    await ask('POST', 'by-flag', { admin: true });
    await ask('POST', 'by-client', { oauth_client_allowed_scopes: ['servers'] });
    for (const name of ['by-role', 'by-flag', 'by-client']) {
      for (const [method, body] of [
        ['PATCH', { api_token: 'token-of-eve' }],
        ['PUT', { api_token: 'token-of-eve' }],
        ['DELETE', undefined],
      ] as const) {
        expect([name, method, await statusOf(method, name, body, as)]).toEqual([name, method, 403]);
      }
    }
    expect((await whoami('token-of-by-role')).scopes).toContain('shutdown');
    expect((await whoami('token-of-eve')).status).toBe(403);
    // Its roles are not for the next one of that name.
    await ask('DELETE', 'by-role');
    await ask('POST', 'by-role', { api_token: 'token-of-the-next' });
    expect((await whoami('token-of-the-next')).scopes).not.toContain('shutdown');
  });

  test('waits in vain for a service of the configuration with a name that is taken', async () => {
    await ask('POST', 'awaited', { api_token: 'token-of-eve-2' }, as);
    const services = [...(config.Hub as { services: object[] }).services];
    const awaited = { name: 'awaited', api_token: 'token-of-operator' };
    await hub.reload({ ...config, Hub: { ...config.Hub, services: [...services, awaited] } });
    expect((await whoami('token-of-eve-2')).status).toBe(403);
    expect((await ask('GET', 'awaited')).body.source).toBe('config');
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({ service: 'awaited', former: expect.anything() }),
    );
    await hub.reload(config);
    expect(await statusOf('GET', 'awaited')).toBe(404);
  });
});

describe('the pages', () => {
  const at = (path: string) => `${hub.url}hub/admin${path}`;

  test('add, change and delete a service, and show its token once', async () => {
    const ada = await hub.logIn('ada', testPassword);
    const form = await ada.request(at('/new-service'));
    const typed = { name: 'by-page', title: 'By <page>', access: 'gateway', display: 'true' };
    const refused = await submitMain(ada, form, { ...typed, url: new URL(hub.apiUrl).origin });
    expect([refused.status, refused.body.includes('the hub itself')]).toEqual([400, true]);
    expect(refused.body).toContain('value="By &lt;page&gt;"');
    // Beside the field, which has the focus, and in no banner above the form.
    expect(refused.body).toMatch(
      /<input[^>]* id="field-url"[^>]* aria-describedby="field-url-problem field-url-help" autofocus=""/,
    );
    expect(refused.body).toMatch(
      /<p class="problem" id="field-url-problem">Is an address of the hub itself\.</,
    );
    expect(refused.body).not.toContain('notice bad');
    const rule = await submitMain(ada, form, { ...typed, name: 'by page' });
    expect(rule.body).toMatch(/id="field-name-problem">[^<]+</);
    expect(rule.body).toContain('Letters, digits and . _ ~ - only.');
    const oauth_redirect_uris = 'https://a.example.org/cb\nhttps://b.example.org/cb';
    const added = await submitMain(ada, form, { ...typed, url: appUrl, oauth_redirect_uris });
    const token = /hub_[\w-]+/.exec(added.body)?.[0];
    expect((await whoami(token)).name).toBe('by-page');
    expect(added.body).toContain('/hub/admin/services');

    // The gateway checks the visitors of this one, which has no use for a token.
    const guarded = await submitMain(ada, form, { ...typed, name: 'guarded', url: appUrl });
    expect([guarded.status, guarded.headers.location]).toEqual([
      303,
      '/hub/admin/services/guarded',
    ]);
    await ask('DELETE', 'guarded');

    const list = await ada.request(at('/services'));
    expect(list.body).not.toContain(token);
    const page = await ada.request(at('/services/by-page'));
    expect(page.body).toContain('/hub/admin/services/by-page/edit');
    expect(page.body).not.toContain(token);
    const fixed = await ada.request(at('/services/fixed'));
    expect(fixed.body).not.toContain('/hub/admin/services/fixed/edit');
    const edit = await ada.request(at('/services/by-page/edit'));
    expect(edit.body).toContain('https://a.example.org/cb\nhttps://b.example.org/cb');
    await ask('PATCH', 'by-page', { oauth_client_allowed_scopes: ['read:users'] });
    const late = await submitMain(ada, edit, { ...typed, title: '', url: '' });
    expect([late.status, late.body.includes('changed since')]).toEqual([400, true]);
    expect(late.body).toContain('by Service admin-service.');
    expect(late.body).toContain(`<dt>Address</dt><dd>${appUrl}</dd>`);
    expect((await ask('GET', 'by-page')).body).toMatchObject({ url: appUrl });
    const saved = await submitMain(ada, late, {
      title: '',
      url: appUrl,
      access: 'public',
      oauth_redirect_uris: '',
    });
    expect(saved.status).toBe(303);
    const { body } = await ask('GET', 'by-page');
    expect(body).toMatchObject({ access: 'public', display: false, info: {}, url: appUrl });
    const bare = await ada.request(at('/services/by-page/edit'));
    expect(bare.body).toContain('<details class="more"><summary>Limits');
    expect(bare.body).not.toContain('a.example.org');
    expect((await whoami(token)).name).toBe('by-page');
    const limits = { 'limits.requests_per_second': '0.001', 'limits.per': 'address' };
    const open = { title: '', url: appUrl, access: 'public' };
    const wrong = await submitMain(ada, bare, { ...open, 'limits.allow_addresses': 'here' });
    expect([wrong.status, wrong.body.includes('>here</textarea>')]).toEqual([400, true]);
    expect((await submitMain(ada, bare, { ...open, ...limits })).status).toBe(303);
    const visit = () => fetch(`${hub.url}services/by-page/`);
    expect((await visit()).status).toBe(200);
    expect((await visit()).status).toBe(429);
    const limited = await ada.request(at('/services/by-page/edit'));
    expect(limited.body).toMatch(/<details class="more" open><summary>Limits[\s\S]*value="0.001"/);
    const shown = await ada.request(at('/services/by-page'));
    expect(shown.body).toContain('<dt>One visitor is</dt><dd>An address</dd>');
    const without = { 'limits.requests_per_second': '' };
    expect((await submitMain(ada, limited, { ...open, ...without })).status).toBe(303);
    expect((await visit()).status).toBe(200);
    const set = 'headers.request.set';
    for (const [lines, problem] of [
      ['X-A: b\nX-Hub-User: root', 'Is no header that can be changed here'],
      ['X-A: b\nsecret', '>Line 2 is not Name: value.'],
    ] as const) {
      const { status, body } = await submitMain(ada, limited, { ...open, [set]: lines });
      expect(status).toBe(400);
      expect(body).toContain(problem);
      expect(body).toContain(`>${lines}</textarea>`);
    }
    const bySecret = { [set]: 'X-Key: of: <app>', 'headers.response.set': 'X-Frame-Options: DENY' };
    const replaced = await ada.request(at('/services/by-page/edit'));
    expect((await submitMain(ada, replaced, { ...open, ...bySecret })).status).toBe(303);
    const { headers } = await visit();
    expect([headers.get('x-app'), headers.get('x-frame-options')]).toEqual(['of: <app>', 'DENY']);
    const named = (await ada.request(at('/services/by-page'))).body;
    expect(named).toContain('<dt>Headers set in requests</dt><dd>X-Key</dd>');
    expect(named).not.toContain('of: &lt;app');
    const withHeaders = await ada.request(at('/services/by-page/edit'));
    expect(withHeaders.body).toContain('\nX-Key: of: &lt;app&gt;</textarea>');
    const removing = { [set]: '', 'headers.response.set': '', 'headers.response.remove': 'x-app' };
    expect((await submitMain(ada, withHeaders, { ...open, ...removing })).status).toBe(303);
    const stripped = (await visit()).headers;
    expect([stripped.get('x-app'), stripped.get('x-frame-options')]).toEqual([null, null]);
    const removed = await ada.request(at('/services/by-page/edit'));
    expect(
      (await submitMain(ada, removed, { ...open, 'headers.response.remove': '' })).status,
    ).toBe(303);
    expect((await visit()).headers.get('x-app')).toBe('undefined');
    // The form has no field for a title in languages, and leaves it as it is.
    const title = { en: 'Ours', de: 'Unseres' };
    await ask('PATCH', 'by-page', { info: { title } });
    const again = await ada.request(at('/services/by-page/edit'));
    await submitMain(ada, again, { title: '', url: appUrl, access: 'gateway' });
    expect((await ask('GET', 'by-page')).body).toMatchObject({
      access: 'gateway',
      info: { title },
    });

    const confirm = await ada.request(at('/services/by-page/delete'));
    await ask('PATCH', 'by-page', { display: true });
    const askedAgain = await submitMain(ada, confirm, {});
    expect([askedAgain.status, askedAgain.body]).toEqual([
      400,
      expect.stringContaining('Nothing was deleted'),
    ]);
    expect((await submitMain(ada, askedAgain, {})).status).toBe(303);
    expect(await statusOf('GET', 'by-page')).toBe(404);
    expect((await ada.request(at('/services/fixed/edit'))).status).toBe(404);
  });
});

describe('the pages, with managed services at run time,', () => {
  test('add one with its command, change it, keep what is not shown, and end it', async () => {
    await using own = await createPasswordHub(['ada'], {
      Hub: { allow_managed_services_at_runtime: true },
    });
    const ada = await own.logIn('ada', testPassword);
    const page = (path: string) => ada.request(`${own.url}hub/admin${path}`);
    const problemIn = ({ body }: { body: string }) =>
      /class="notice bad"[\s\S]*?<\/div>/.exec(body)?.[0];
    const output = async () => {
      const answer = await own.api('/services/says/output', adminToken);
      return ((await answer.json()) as { lines: string[] }).lines;
    };
    const typed = {
      name: 'says',
      title: '',
      url: '',
      access: 'gateway',
      command: `sh -c 'echo "$WORD $MORE"; exec sleep 600' "it's" ""`,
      environment: 'WORD=first\nMORE=a=b\n',
      cwd: '/',
      user: '',
    };
    const wrong = await submitMain(ada, await page('/new-service'), {
      ...typed,
      environment: 'WORD=first\nhush',
    });
    expect([wrong.status, wrong.body.includes('>Line 2 is not')]).toEqual([400, true]);
    const added = await submitMain(ada, wrong, typed);
    expect([problemIn(added), added.headers.location]).toEqual([
      undefined,
      '/hub/admin/services/says',
    ]);
    await until(async () => (await output()).includes('first a=b'), 'it runs with its variables');

    const edit = await page('/services/says/edit');
    expect(edit.body).not.toContain('first');
    const command = /name="command"[^>]*value="([^"]*)"/.exec(edit.body)?.[1] ?? '';
    const shown = { ...typed, command: unescapeHtml(command), environment: '' };
    const changed = { ...shown, title: 'Says', cwd: '/tmp' };
    expect((await submitMain(ada, edit, changed)).status).toBe(303);
    const model = async () =>
      (await (await own.api('/services/says', adminToken)).json()) as Record<string, unknown>;
    expect(await model()).toMatchObject({
      command: ['sh', '-c', 'echo "$WORD $MORE"; exec sleep 600', "it's", ''],
      info: { title: 'Says' },
    });
    await until(
      async () => (await output()).filter((line) => line === 'first a=b').length > 1,
      'it runs with the variables it had',
    );
    const none = await submitMain(ada, await page('/services/says/edit'), {
      ...shown,
      command: '',
    });
    expect([none.status, none.body.includes('needs one')]).toEqual([400, true]);
    const cleared = { ...shown, clear_environment: 'true' };
    expect((await submitMain(ada, await page('/services/says/edit'), cleared)).status).toBe(303);
    await until(async () => (await output()).at(-1) === ' ', 'it runs without variables');

    expect((await submitMain(ada, await page('/services/says/delete'), {})).status).toBe(303);
    expect((await own.api('/services/says', adminToken)).status).toBe(404);
  });

  test('refuse one at an address that something else has, and say what', async () => {
    const [port, freshPort] = [await freePort(), await freePort()];
    const listening = (at: number) => ({
      url: `http://127.0.0.1:${at}`,
      command: [
        process.execPath,
        '-e',
        `require('node:http').createServer((_, answer) => answer.end()).listen(${at}, '127.0.0.1')`,
      ],
    });
    await using own = await createPasswordHub(['ada'], {
      Hub: {
        allow_managed_services_at_runtime: true,
        services: [{ name: 'of-the-file', ...listening(port) }],
      },
    });
    const add = async (name: string, body: object) => {
      const init = { method: 'POST', body: JSON.stringify(body) };
      const answer = await own.api(`/services/${name}`, adminToken, init);
      return [answer.status, ((await answer.json()) as ServiceModel).message];
    };
    expect(await add('of-the-api', listening(freshPort))).toEqual([201, undefined]);
    const remotePort = await freePort();
    const remote = { url: `http://127.0.0.1:${remotePort}` };
    expect(await add('elsewhere', remote)).toEqual([201, undefined]);
    // Two names of one app that runs elsewhere.
    expect(await add('elsewhere-too', remote)).toEqual([201, undefined]);
    const hubPort = Number(new URL(own.apiUrl).port);
    for (const [taken, owner] of [
      [port, 'the service "of-the-file"'],
      [freshPort, 'the service "of-the-api"'],
      [remotePort, 'the service "elsewhere"'],
      [hubPort, 'the hub itself'],
    ] as const) {
      const byOtherName = {
        ...listening(taken),
        url: `http://localhost:${taken}/`,
      };
      expect(await add('late', byOtherName)).toEqual([
        409,
        `url: has the same address and port as ${owner}.`,
      ]);
      expect((await own.api('/services/late', adminToken)).status).toBe(404);
    }
    expect(await add('late', { url: `http://localhost:${freshPort}/` })).toEqual([
      409,
      'url: has the same address and port as the service "of-the-api".',
    ]);
  });

  test('ask for no command where it is not allowed', async () => {
    const ada = await hub.logIn('ada', testPassword);
    const form = await ada.request(`${hub.url}hub/admin/new-service`);
    expect(form.body).not.toContain('name="command"');
  });
});

test('no token stands in the database, the log or another answer', async () => {
  await ask('POST', 'secretive', { api_token: 'never-to-be-seen-again' });
  const shown = JSON.stringify([(await ask('GET', 'secretive')).body, hub.logLines]);
  expect(shown).not.toContain('never-to-be-seen-again');
});
