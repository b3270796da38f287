import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { submitMain } from '../support/pages.ts';
import { asAdmin, call, createPopulatedHub } from '../support/populated-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

const staffRules = [{ paths: ['/admin/*'], groups: ['staff'] }];
const lead = ['admin:services', 'read:services', 'list:services', 'admin-ui'];

let hub: TestHub & { readonly tokens: Readonly<Record<'lead' | 'guest' | 'owner', string>> };
beforeAll(async () => {
  hub = await createPopulatedHub(
    {
      Hub: {
        load_roles: [
          { name: 'lead', scopes: lead, users: ['lead'] },
          {
            name: 'owner',
            scopes: [...lead, 'access:services!service=payroll'],
            users: ['owner', 'guest'],
          },
        ],
        load_groups: [{ name: 'staff', users: ['owner'] }],
      },
    },
    ['lead', 'guest', 'owner'],
  );
  await asAdmin(hub, '/services/payroll', 'POST', {
    url: 'http://127.0.0.1:9/',
    access: 'gateway',
    rules: staffRules,
    api_token: 'token-of-payroll',
  });
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** Each by itself decides who gets in, or where visitors and their logins go. */
const decisive: readonly Readonly<Record<string, unknown>>[] = [
  { access: 'public', rules: [] },
  { access: 'service', rules: [] },
  { rules: [] },
  { rules: [{ paths: ['/*'], allow: 'everyone' }] },
  { oauth_redirect_uri: 'https://evil.example/callback' },
  { oauth_client_id: 'service-evil' },
  { api_token: 'token-of-the-lead' },
  { strip_prefix: true },
  { oauth_no_confirm: false },
  { health_path: '/admin/reset' },
  { url: null, access: 'service', rules: [] },
];

describe.each([
  ['without access to a service', 'lead'],
  ['outside the groups of its rules', 'guest'],
] as const)('who administers services, but is %s', (_what, name) => {
  test.each(decisive)('does not change %j', async (change) => {
    const before = await asAdmin(hub, '/services/payroll');
    const token = hub.tokens[name];
    const changed = await call(hub, token, '/services/payroll', 'PATCH', change);
    expect(changed.status).toBe(403);
    expect(changed.body['hint']).toMatch(/access:services!service=payroll|staff/);
    const whole = { url: before['url'], access: 'gateway', rules: staffRules, ...change };
    const body = Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== null));
    expect((await call(hub, token, '/services/payroll', 'PUT', body)).status).toBe(403);
    expect(await asAdmin(hub, '/services/payroll')).toEqual(before);
  });

  test('changes how it is shown', async () => {
    const token = hub.tokens[name];
    const change = { display: name === 'lead', timeout: 31, info: { title: name } };
    expect((await call(hub, token, '/services/payroll', 'PATCH', change)).status).toBe(200);
  });
});

test('who administers services without access changes nothing of it by the page', async () => {
  const before = await asAdmin(hub, '/services/payroll');
  const browser = await hub.logIn('lead');
  const form = await browser.request(`${hub.url}hub/admin/services/payroll/edit`);
  const url = String(before['url']);
  const sent = await submitMain(browser, form, { url, access: 'public', title: '' });
  expect([400, 403]).toContain(sent.status);
  expect(sent.body).toContain('access:services!service=payroll');
  expect(await asAdmin(hub, '/services/payroll')).toEqual(before);
});

test('who may pass all of a service changes who else may', async () => {
  const asOwner = (body: object) => call(hub, hub.tokens.owner, '/services/payroll', 'PATCH', body);
  expect((await asOwner({ access: 'public', rules: [] })).status).toBe(200);
  expect((await asOwner({ access: 'gateway', rules: staffRules })).status).toBe(200);
});

test('a new service to which visitors or logins go needs access to all', async () => {
  const asOwner = (body: object) => call(hub, hub.tokens.owner, '/services/new', 'POST', body);
  const open = await asOwner({ oauth_redirect_uri: 'https://app.example/callback' });
  expect(open.status).toBe(403);
  expect(open.body['hint']).toContain('access:services');
  expect((await asOwner({ display: false })).status).toBe(201);
  const later = { oauth_redirect_uri: 'https://app.example/callback' };
  expect((await call(hub, hub.tokens.owner, '/services/new', 'PATCH', later)).status).toBe(403);
});

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  'myapp://callback',
  'https://app.example/callback#part',
  '/services/x/callback#part',
])('codes are not sent to %s', async (uri) => {
  const made = await call(hub, 'admin-service-token', '/services/scheme', 'POST', {
    oauth_redirect_uri: uri,
  });
  expect(made.status).toBe(400);
  expect(JSON.stringify(made.body)).toContain('oauth_redirect_uri');
  await expect(
    hub.reload({ Hub: { services: [{ name: 'scheme', oauth_redirect_uri: uri }] } }),
  ).rejects.toThrow();
});
