import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { strongKey, useConfigLoading } from '../../../test/support/config-loading.ts';
import type { Config } from './config.ts';
import { loadConfig } from './load.ts';

const { directory: folder, load, problemsOf } = useConfigLoading();

describe('a sound configuration', () => {
  test('may be an empty object: every setting has a default', async () => {
    const { config, warnings } = await load({});
    expect(config.Hub.bind_url).toBe('http://127.0.0.1:8000/');
    expect(config.publicUrl.href).toBe('http://127.0.0.1:8000/');
    expect(config.basePath).toBe('/');
    expect(config.authenticators).toEqual([{ class: 'password', name: 'password', options: {} }]);
    expect(config.directory).toBe(folder());
    expect(config.Hub.cookie_secret).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  test('may hold comments, trailing commas, a byte order mark and its schema', async () => {
    const { config } = await load(
      '\uFEFF// the hub\n{ "$schema": "./s.json", "Hub": { /* shown */ "title": "Lab", }, }',
    );
    expect(config.Hub.title).toBe('Lab');
    expect(config.pluginSections).toEqual({});
  });

  test('listens by https for all where it gets certificates itself', async () => {
    const { config } = await load({
      Hub: { public_url: 'https://hub.example.org/', acme: { accept_terms: true } },
    });
    expect(config.Hub.bind_url).toBe('https://0.0.0.0:443/');
  });

  test('takes its base path from bind_url, whatever public_url leaves out', async () => {
    const { config } = await load({
      Hub: { bind_url: 'http://127.0.0.1:8000/team', public_url: 'https://hub.example.org' },
    });
    expect(config.basePath).toBe('/team/');
    expect(config.publicUrl.href).toBe('https://hub.example.org/team/');
  });

  test('lists authenticators with their name and their own options apart', async () => {
    const { config } = await load({
      Hub: {
        authenticator_class: ['password', { class: 'oidc', name: 'work', issuer: 'https://i' }],
      },
    });
    expect(config.authenticators).toEqual([
      { class: 'password', name: 'password', options: {} },
      { class: 'oidc', name: 'work', options: { issuer: 'https://i' } },
    ]);
  });

  test('may name one authenticator as an object', async () => {
    const { config } = await load({ Hub: { authenticator_class: { class: 'oidc', scope: 'x' } } });
    expect(config.authenticators).toEqual([
      { class: 'oidc', name: 'oidc', options: { scope: 'x' } },
    ]);
  });

  test('keeps the sections of plugins as they stand, references included', async () => {
    const section = { client_secret: { env: 'NOT_THERE' } };
    const { config } = await load({ OIDCAuthenticator: section });
    expect(config.pluginSections).toEqual({ OIDCAuthenticator: section });
  });

  test('takes the address of an instance from a variable, so that all can share one file', async () => {
    const shared = { Hub: { instance_url: { env: 'OWN_URL' } } };
    const { config } = await load(shared, { env: { OWN_URL: 'http://hub-a:8080' } });
    expect(config.Hub.instance_url).toBe('http://hub-a:8080');
    await expect(
      problemsOf(shared, { env: { OWN_URL: 'http://hub-a:8080/path' } }),
    ).resolves.toEqual([
      'Hub.instance_url: is not an origin, such as http://10.0.0.5:8080: no user, path or query',
    ]);
    await expect(problemsOf(shared)).resolves.toEqual([
      'Hub.instance_url: the environment variable OWN_URL is not set',
    ]);
  });

  test('resolves secrets from variables and files, and shows none of them', async () => {
    writeFileSync(join(folder(), 'token'), 'from-a-file\n', { mode: 0o600 });
    const { config, warnings } = await load(
      {
        Hub: {
          cookie_secret: { env: 'COOKIE_KEY' },
          database_url: { env: 'DATABASE' },
          services: [{ name: 'a', url: 'http://h/', api_token: { file: 'token' } }],
        },
      },
      { env: { COOKIE_KEY: strongKey, DATABASE: 'postgresql://u:pw@h/d' } },
    );
    expect(config.Hub.cookie_secret?.map((key) => key.reveal())).toEqual([strongKey]);
    expect(config.Hub.database_url).toBe('postgresql://u:pw@h/d');
    expect(config.Hub.services[0]?.api_token?.reveal()).toBe('from-a-file');
    expect(JSON.stringify(config)).not.toContain(strongKey);
    expect(JSON.stringify(config)).not.toContain('from-a-file');
    expect(warnings).toEqual([]);
  });

  test('warns when a secret file can be read by others', async () => {
    writeFileSync(join(folder(), 'token'), 'from-a-file');
    chmodSync(join(folder(), 'token'), 0o644);
    const { warnings } = await load({
      Hub: { services: [{ name: 'a', api_token: { file: 'token' } }] },
    });
    expect(warnings).toEqual([
      { path: 'Hub.services[0].api_token', message: expect.stringContaining('chmod 600') },
    ]);
  });

  test('warns of settings without effect', async () => {
    const { warnings } = await load({
      Hub: { bind_url: 'http://0.0.0.0:8000/' },
      Authenticator: {
        allow_all: true,
        allowed_users: ['ada'],
        admin_users: ['bob'],
        blocked_users: ['bob'],
      },
    });
    expect(warnings.map(({ path }) => path)).toEqual([
      'Hub.public_url',
      'Authenticator.allowed_users',
      'Authenticator.admin_users',
    ]);
  });

  test.each([
    ['http://hub.example.org/', ['Hub.public_url']],
    ['http://192.0.2.1:8000/', ['Hub.public_url']],
    ['https://hub.example.org/', []],
    ['http://hub.localhost:8000/', []],
    ['http://[::1]:8000/', []],
  ])('warns of what plain http costs: %s', async (public_url, paths) => {
    const { warnings } = await load({ Hub: { public_url } });
    expect(warnings.map(({ path }) => path)).toEqual(paths);
  });

  const onSocket = { bind_url: 'unix:///run/hub.sock', public_url: 'https://hub.example.org/' };

  test.for<[string, object, RegExp | undefined]>([
    ['a proxy on this machine', {}, /^127\.0\.0\.1 is this machine.*lock .*Unix socket/],
    ['a range', { Hub: { trusted_proxies: ['10.0.0.0/8', '127.0.0.0/8'] } }, /^127\.0\.0\.1/],
    ['a hub on a socket', { Hub: onSocket }, /remove it/],
    ['a proxy elsewhere', { Hub: { trusted_proxies: ['192.0.2.1'] } }, undefined],
    ['no servers of users', { Spawner: {} }, undefined],
    ['servers elsewhere', { Spawner: { cmd: ['a'], class: 'docker' } }, undefined],
  ])('warns where users can forge addresses: %s', async ([, given, expected]) => {
    const { Hub, Spawner } = given as { Hub?: object; Spawner?: object };
    const { warnings } = await load({
      Hub: { trusted_proxies: ['127.0.0.1'], ...Hub },
      Spawner: Spawner ?? { cmd: ['a'] },
    });
    const found = warnings.find(({ path }) => path === 'Hub.trusted_proxies')?.message;
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(expected);
  });

  const asked = (access: string) => ({ extra_routes: { 'app.test/': { access } } });

  test.for<[string, object, readonly RegExp[]]>([
    [
      'an app that no proxy may ask about',
      { Proxy: asked('forward-auth') },
      [/app\.test.*no proxy/],
    ],
    [
      'one that a proxy asks about',
      { Hub: { trusted_proxies: ['192.0.2.1'] }, Proxy: asked('forward-auth') },
      [],
    ],
    ['one on a socket', { Hub: onSocket, Proxy: asked('forward-auth') }, []],
    [
      'headers for no app',
      { Proxy: { forward_auth_headers: 'original' } },
      [/forward_auth_headers.*no effect/],
    ],
    [
      'a host of no proxy',
      { Hub: { trust_forwarded_host: true } },
      [/trust_forwarded_host.*no effect/],
    ],
    ['one of a proxy', { Hub: { trust_forwarded_host: true, trusted_proxies: ['192.0.2.1'] } }, []],
  ])('warns of settings for other proxies: %s', async ([, given, expected]) => {
    const { warnings } = await load(given);
    const found = warnings.map(({ path, message }) => `${path}: ${message}`);
    const about = found.filter((line) => /forward_auth|forwarded_host|extra_routes/.test(line));
    expect(about).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(about[index]).toMatch(pattern);
  });

  test('warns of apps that are never told the address they should get', async () => {
    const app = { access: 'gateway', identity_headers: { user: 'X-A', email: 'X-B' } };
    const asking = { ...app, oauth_client_allowed_scopes: ['read:users:info!user'] };
    const target = 'http://127.0.0.1:1';
    const { warnings } = await load({
      Hub: { services: [{ name: 'wiki', url: target, ...app }] },
      Proxy: { extra_routes: { '/a/': { target, ...app }, '/b/': { target, ...asking } } },
    });
    expect(warnings.map(({ path }) => path).filter((path) => path.includes('identity'))).toEqual([
      'Hub.services.wiki.identity_headers.email',
      'Proxy.extra_routes./a/.identity_headers.email',
    ]);
  });

  test('is frozen through and through', async () => {
    const { config } = await load({ Hub: { services: [{ name: 'a', info: { x: [1] } }] } });
    const info = config.Hub.services[0]?.info as { x: number[] };
    expect(() => info.x.push(2)).toThrow(TypeError);
    expect(() => Object.assign(config.Hub, { title: 'x' })).toThrow(TypeError);
  });
});

describe('problems', () => {
  test('never hold the value of a secret', async () => {
    const problems = await problemsOf(
      { Hub: { database_url: { env: 'DATABASE' }, cookie_secret: { env: 'DATABASE' } } },
      { env: { DATABASE: 'hunter2-hunter2' } },
    );
    expect(problems).toHaveLength(2);
    expect(problems.join()).not.toContain('hunter2');
  });

  test('of further checks show together with those of the schema', async () => {
    const check = (config: Config) =>
      config.Hub.services.map(({ name }, index) => ({
        path: `Hub.services[${index}].name`,
        message: `${name} is refused`,
      }));
    const content = { Hub: { titel: 'x', services: [{}, { name: 'b' }, { name: 'c', bad: 1 }] } };
    expect(await problemsOf(content, { checks: [check] })).toEqual([
      expect.stringMatching(/^Hub\.titel: /),
      'Hub.services[0].name: is missing',
      'Hub.services[1].name: b is refused',
      'Hub.services[2].name: c is refused',
      expect.stringMatching(/^Hub\.services\[2\]\.bad: /),
    ]);
  });

  test('that follow from another one are left out', async () => {
    const check = () => [{ path: 'Hub.services[0].cwd', message: 'is only for managed services' }];
    const content = { Hub: { services: [{ name: 'a', command: 3, cwd: '/tmp' }] } };
    expect(await problemsOf(content, { checks: [check] })).toEqual([
      'Hub.services[0].command: must be text or a list',
    ]);
  });

  test('name the file that cannot be read', async () => {
    const missing = join(folder(), 'missing.json');
    await expect(loadConfig({ file: missing, env: {} })).rejects.toThrow(
      `${missing} cannot be used:\n  cannot be read: there is no such file`,
    );
  });
});

describe('without a file given', () => {
  test('hub.config.json is read, and only in its absence the example', async () => {
    writeFileSync(join(folder(), 'hub.config.example.json'), '{"Hub": {"title": "Example"}}');
    expect((await loadConfig({ env: {}, directory: folder() })).Hub.title).toBe('Example');
    writeFileSync(join(folder(), 'hub.config.json'), '{"Hub": {"title": "Own"}}');
    expect((await loadConfig({ env: {}, directory: folder() })).Hub.title).toBe('Own');
  });
});
