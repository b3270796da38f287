import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../platform/config/load.ts';
import { ConfigError } from '../../platform/errors.ts';
import { createPluginLoader } from './plugin-loader.ts';
import {
  createConfiguredPluginLoader,
  type PreparedPlugins,
  preparePlugins,
} from './prepare-plugins.ts';

const root = mkdtempSync(join(tmpdir(), 'hub-plugins-'));
afterAll(() => rmSync(root, { recursive: true }));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(root, 'case-'));
  mkdirSync(join(directory, 'plugins'));
});

/** A folder outside the program has no packages of its own. */
const zod = pathToFileURL(join(import.meta.dirname, '../../../node_modules/zod/index.js')).href;

function writePlugin(file: string, fields: string, name = 'example'): void {
  const path = join(directory, 'plugins', file);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(
    path,
    `import { z } from ${JSON.stringify(zod)};
     export default {
       kind: 'authenticator',
       name: ${JSON.stringify(name)},
       section: 'ExampleAuthenticator',
       optionsSchema: z.strictObject({
         realm: z.string(),
         client_secret: z.string().optional(),
         nested: z.object({ key: z.string() }).optional(),
       }),
       secretOptions: ['client_secret', 'nested.key'],
       create: () => ({
         login: {
           kind: 'form',
           label: 'Example',
           fields: [{ name: 'username', label: 'Name', type: 'text', autocomplete: 'username' }],
         },
         authenticate: async () => ({ outcome: 'refused', reason: 'credentials' }),
         open() { throw new Error('nothing may be opened while checking'); },
       }),
       ${fields}
     };`,
  );
}

async function prepare(
  content: object,
  env: Record<string, string> = {},
): Promise<PreparedPlugins & { texts: string[] }> {
  const file = join(directory, 'hub.config.json');
  writeFileSync(file, JSON.stringify(content));
  const config = await loadConfig({ file, env });
  const prepared = await preparePlugins(config, { env });
  const texts = prepared.problems.map(({ path, message }) => `${path}: ${message}`);
  return { ...prepared, texts };
}

test('the plugins that come with the hub are found by name', async () => {
  const { authenticators, texts } = await prepare({
    Hub: { authenticator_class: ['password', 'dummy'] },
  });
  expect(texts).toEqual([]);
  expect(authenticators.map(({ plugin }) => plugin.section)).toEqual([
    'PasswordAuthenticator',
    'DummyAuthenticator',
  ]);
});

test('a file dropped into plugins_dir can be named, in TypeScript or JavaScript', async () => {
  writePlugin('example.ts', 'note: ("typed" as string),');
  writePlugin('second.mjs', '', 'second');
  const { authenticators, texts } = await prepare({
    Hub: { authenticator_class: ['example', 'second'] },
    ExampleAuthenticator: { realm: 'r' },
  });
  expect(texts).toEqual([]);
  expect(authenticators.map(({ options }) => options)).toEqual([{ realm: 'r' }, { realm: 'r' }]);
});

test('a folder with an index file is a plugin, and its own modules are not', async () => {
  writePlugin('example/index.ts', '');
  writeFileSync(join(directory, 'plugins/example/broken.ts'), 'not code');
  const { texts } = await prepare({
    Hub: { authenticator_class: { class: 'example', realm: 'r' } },
  });
  expect(texts).toEqual([]);
});

test('a plugin is found by its name also when the file is called otherwise', async () => {
  writePlugin('some-file.ts', '', 'example');
  const { authenticators } = await prepare({
    Hub: { authenticator_class: { class: 'example', realm: 'r' } },
  });
  expect(authenticators).toHaveLength(1);
});

test('files that are not named are not even loaded', async () => {
  writePlugin('example.ts', '');
  writeFileSync(join(directory, 'plugins/bomb.ts'), 'throw new Error("loaded");');
  const { texts } = await prepare({
    Hub: { authenticator_class: { class: 'example', realm: 'r' } },
  });
  expect(texts).toEqual([]);
});

test.for([
  ['no default export', 'export const x = 1;', /is not a plugin: it has no default export/],
  [
    'another default export',
    'export default 3;',
    /is not a plugin: Invalid input: expected object, received number/,
  ],
  [
    'a wrong shape',
    'export default { kind: "auth", name: "x y", section: "Hub", optionsSchema: {}, create: 1 };',
    /kind: Invalid option: .*; name: may hold .*; section: is one of the hub's own sections; optionsSchema: must be a schema made with zod; create: must be a function/,
  ],
] as const)('%s is told with the name of the file', async ([, source, expected]) => {
  writeFileSync(join(directory, 'plugins/example.ts'), source);
  const { texts } = await prepare({ Hub: { authenticator_class: ['password', 'example'] } });
  expect(texts).toEqual([expect.stringMatching(expected)]);
  expect(texts[0]).toMatch(/^Hub\.authenticator_class\[1\]: .*plugins\/example\.ts/);
});

test('two plugins of one name are a problem that names both files', async () => {
  writePlugin('password.ts', '', 'password');
  const { texts } = await prepare({});
  expect(texts).toEqual([
    expect.stringMatching(
      /^Hub\.authenticator_class: two plugins are called "password": .*plugins\/password\.ts and .*plugins\/password\.ts$/,
    ),
  ]);
});

test('an unknown name is answered with what was probably meant, and with what could not be read', async () => {
  writeFileSync(join(directory, 'plugins/other.ts'), 'export default 3;');
  const { texts } = await prepare({ Hub: { authenticator_class: 'pasword' } });
  expect(texts).toEqual([
    expect.stringMatching(
      /^Hub\.authenticator_class: there is no authenticator plugin called "pasword"; did you mean `password`\?; .*other\.ts is not a plugin/,
    ),
  ]);
});

test('an unknown section is a problem; one of a plugin that is not in use is none', async () => {
  const { texts } = await prepare({
    DummyAuthenticator: {},
    PaswordAuthenticator: {},
    bind_url: {},
    Something: {},
  });
  expect(texts).toEqual([
    'PaswordAuthenticator: is not a section of the hub or of a plugin; did you mean `PasswordAuthenticator`?',
    'bind_url: belongs in the section Hub',
    'Something: is not a section of the hub or of a plugin',
  ]);
});

test('problems of options stand where the option stands', async () => {
  writePlugin('example.ts', '');
  const { texts } = await prepare({
    Hub: {
      authenticator_class: ['example', { class: 'example', name: 'two', realm: 3, real: 1 }],
    },
    ExampleAuthenticator: { clientSecret: 'x' },
  });
  expect(texts).toEqual([
    'ExampleAuthenticator.realm: is missing',
    'ExampleAuthenticator.clientSecret: is not a known setting; did you mean `client_secret`?',
    'Hub.authenticator_class[1].realm: must be text',
    'Hub.authenticator_class[1].real: is not a known setting; did you mean `realm`?',
  ]);
});

test('secrets of a plugin are resolved, and those that lead nowhere are named once', async () => {
  writePlugin('example.ts', '');
  const options = { realm: 'r', client_secret: { env: 'CLIENT' }, nested: { key: { env: 'KEY' } } };
  const content = { Hub: { authenticator_class: { class: 'example', ...options } } };
  const { authenticators } = await prepare(content, { CLIENT: 'one', KEY: 'two' });
  expect(authenticators[0]?.options).toEqual({
    realm: 'r',
    client_secret: 'one',
    nested: { key: 'two' },
  });
  const { texts } = await prepare(content, { KEY: 'two' });
  expect(texts).toEqual([
    'Hub.authenticator_class.client_secret: the environment variable CLIENT is not set',
  ]);
});

test.for([
  ['a certificate is no secret', 'CERTIFICATE', []],
  ['a private key is one', 'PRIVATE KEY', ['LDAPAuthenticator.tls_ca']],
] as const)('a file that others can read: %s', async ([, label, warned]) => {
  const pem = `# for the directory\n-----BEGIN ${label}-----\nAAAA\n-----END ${label}-----\n`;
  const certificate = pem.replaceAll(label, 'CERTIFICATE');
  writeFileSync(join(directory, 'ca.pem'), certificate + pem, { mode: 0o644 });
  const { texts, warnings } = await prepare({
    Hub: { authenticator_class: 'ldap' },
    LDAPAuthenticator: {
      url: 'ldaps://directory.example.org',
      user_search_base: 'dc=example',
      tls_ca: { file: 'ca.pem' },
    },
  });
  expect(texts).toEqual([]);
  expect(warnings.map(({ path }) => path)).toEqual(warned);
});

test('several external providers need callbacks of their own, and one beside a form does not', async () => {
  const github = { client_id: 'the-hub', client_secret: 'a secret of the hub' };
  const warned = async (authenticator_class: unknown, Authenticator: object = {}) => {
    const content = { Hub: { authenticator_class }, Authenticator, GitHubAuthenticator: github };
    const { texts, warnings } = await prepare(content);
    expect(texts).toEqual([]);
    return warnings.map(({ path, message }) => `${path} ${message}`);
  };
  const two = ['github', { class: 'github', name: 'other' }];
  expect(await warned(two)).toEqual([
    expect.stringMatching(/^Authenticator\.separate_callbacks is off, and github, other send/),
  ]);
  expect(await warned(two, { separate_callbacks: true })).toEqual([]);
  expect(await warned(['github', 'password'])).toEqual([]);
});

test("a plugin's own checks run without creating anything", async () => {
  writePlugin(
    'example.ts',
    `findProblems: (options, around) => [
       { option: 'realm', message: around.name + ' on ' + around.publicUrl },
     ],`,
  );
  const { texts } = await prepare({
    Hub: { authenticator_class: { class: 'example', realm: 'r' } },
  });
  expect(texts).toEqual(['Hub.authenticator_class.realm: example on http://127.0.0.1:8000/']);
});

test('dummy logins on an address that others can reach are refused', async () => {
  const open = { bind_url: 'http://0.0.0.0:8000/', authenticator_class: 'dummy' };
  const { texts } = await prepare({ Hub: open });
  expect(texts).toEqual([
    expect.stringMatching(/^DummyAuthenticator\.allow_non_loopback: must be true/),
  ]);
  const allowed = await prepare({ Hub: open, DummyAuthenticator: { allow_non_loopback: true } });
  expect(allowed.texts).toEqual([]);
});

test('a spawner is looked for as soon as servers have a command', async () => {
  const { texts } = await prepare({ Spawner: { class: 'no-such-spawner' } });
  expect(texts).toEqual([
    expect.stringMatching(/^Spawner\.class: there is no spawner plugin called "no-such-spawner"/),
  ]);
});

test('a folder that is not there simply holds no plugins', async () => {
  const loader = createPluginLoader([join(directory, 'nowhere')]);
  expect(await loader.list()).toEqual({ plugins: [], broken: [] });
});

test('every plugin that comes with the hub can be loaded', async () => {
  const file = join(directory, 'hub.config.json');
  writeFileSync(file, '{}');
  const config = await loadConfig({ file, env: {} });
  const { plugins, broken } = await createConfiguredPluginLoader(config).list();
  expect(broken).toEqual([]);
  expect(plugins.map(({ plugin }) => plugin.name)).toEqual(
    expect.arrayContaining(['password', 'dummy']),
  );
});

test('the problems show together with those of the file', async () => {
  const file = join(directory, 'hub.config.json');
  writeFileSync(file, '{"Hub": {"authenticator_class": "nope", "titel": "x"}, "Nope": {}}');
  const check = async (config: Parameters<typeof preparePlugins>[0]) =>
    (await preparePlugins(config, { env: {} })).problems;
  const error = await loadConfig({ file, env: {}, checks: [check] }).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ConfigError);
  expect(error.problems.map(({ path }: { path: string }) => path)).toEqual([
    'Hub.authenticator_class',
    'Hub.titel',
    'Nope',
  ]);
});

const batch = {
  plugins_dir: join(import.meta.dirname, '../../../fixtures/plugins'),
  authenticator_class: 'dummy',
};

test('the options of each profile are checked and parsed by the spawner', async () => {
  const { spawners, texts } = await prepare({
    Hub: batch,
    Spawner: {
      class: 'batch',
      profiles: [{ name: 'night', options: { partition: 'long' } }, { name: 'day' }],
    },
  });
  expect(texts).toEqual([]);
  expect(spawners[0]?.profileOptions).toEqual(
    new Map([
      ['night', { partition: 'long', is_queued: false }],
      ['day', { partition: 'short', is_queued: false }],
    ]),
  );
  const profiles = [{ name: 'day' }, { name: 'night', options: { partition: 'x', image: 'y' } }];
  const refused = await prepare({ Hub: batch, Spawner: { class: 'batch', profiles } });
  expect(refused.texts).toEqual([
    expect.stringMatching(/^Spawner\.profiles\[1\]\.options\.partition: .*short.*long/),
    'Spawner.profiles[1].options.image: is not a known setting',
  ]);
  expect(refused.spawners).toEqual([]);
});

test('a spawner without options for profiles refuses those of a profile', async () => {
  const profiles = [{ name: 'day', options: { image: 'y' } }];
  const { texts } = await prepare({
    Hub: { authenticator_class: 'dummy' },
    Spawner: { cmd: 'app', profiles },
  });
  expect(texts).toEqual([
    'Spawner.profiles[0].options: the spawner "local-process" takes no options of a profile',
  ]);
});

test('a spawner of servers on other machines needs a hub that can be reached from there', async () => {
  const remote = { Spawner: { class: 'batch' }, BatchSpawner: { is_remote: true } };
  const { texts } = await prepare({ Hub: batch, ...remote });
  expect(texts).toEqual([
    expect.stringMatching(
      /^Hub\.hub_connect_url: http:\/\/127\.0\.0\.1:8080 \(hub_bind_url\) leads nowhere from the servers of "batch"/,
    ),
  ]);
  const reached = { ...batch, hub_connect_url: 'http://10.0.0.5:8080' };
  expect((await prepare({ Hub: reached, ...remote })).texts).toEqual([]);
});

test('idle servers are paused only where their spawner can', async () => {
  const { texts } = await prepare({
    Hub: batch,
    Spawner: { class: 'batch', idle_action: 'pause' },
  });
  expect(texts).toEqual([
    expect.stringMatching(
      /^Spawner\.idle_action: is "pause", and the spawner "batch" cannot pause servers here/,
    ),
  ]);
});
