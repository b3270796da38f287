import { symlink } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { useCheckProcess } from '../support/check-process.ts';
import { freePort } from '../support/free-port.ts';
import { createPluginFolder, type PluginFolder } from '../support/plugin-folder.ts';

/** A plugin as one writes it who has nothing but the documentation: TypeScript, zod and the contract. */
const badges = `import { HubAuth } from '@hub-gateway/hub/client';
import type { AuthenticatorPlugin } from '@hub-gateway/hub/plugin';
import { z } from 'zod';

const optionsSchema = z.strictObject({ file: z.string().min(1) });

const plugin: AuthenticatorPlugin<z.output<typeof optionsSchema>> = {
  kind: 'authenticator',
  name: 'badges',
  section: 'BadgeAuthenticator',
  optionsSchema,
  create: ({ file }) => ({
    login: {
      kind: 'form',
      label: \`Badge \${file} \${HubAuth.name}\`,
      fields: [{ name: 'username', label: 'Badge', type: 'text', autocomplete: 'username' }],
    },
    authenticate: async () => ({ outcome: 'refused', reason: 'credentials' }),
  }),
};

export default plugin;
`;

const named = {
  Hub: { authenticator_class: 'badges' },
  BadgeAuthenticator: { file: 'badges.json' },
};

const checkIn = useCheckProcess();

/** Checks a configuration that names the plugin. */
async function check(folder: PluginFolder, config: object = named) {
  await folder.configure(config);
  return await checkIn(folder.directory);
}

/** The same as an operator does it. */
async function checkByCommand(folder: PluginFolder) {
  await folder.configure(named);
  return await folder.hub('check');
}

describe('a plugin in a folder without packages', () => {
  test.for([
    ['a file', 'plugins/badges.ts'],
    ['a folder', 'plugins/badges/index.ts'],
    ['a file of another name', 'plugins/reception.ts'],
  ])('imports zod and the hub from %s', async ([, file = '']) => {
    await using folder = await createPluginFolder();
    await folder.write(file, badges);
    const { stdout, stderr, code } = await checkByCommand(folder);
    expect(stderr).toBe('');
    expect(stdout).toContain('login           badges');
    expect(code).toBe(0);
  });

  test('may be JavaScript', async () => {
    await using folder = await createPluginFolder();
    const script = badges
      .replace(/^import type .*\n/m, '')
      .replace(/: AuthenticatorPlugin<.*>/, '');
    await folder.write('plugins/badges.mjs', script);
    expect(await check(folder)).toMatchObject({ code: 0, stderr: '' });
  });

  test('may have modules of its own that import the same', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/badges/schema.ts', "export { z } from 'zod';\n");
    const own = badges.replace("from 'zod'", "from './schema.ts'");
    await folder.write('plugins/badges/index.ts', own);
    expect(await check(folder)).toMatchObject({ code: 0, stderr: '' });
  });

  test('may be a link to where it really is', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/readme.txt', '');
    await folder.write('work/reception/index.ts', badges);
    await folder.write('work/single.ts', badges.replaceAll(/badge/gi, 'Single'));
    await symlink(folder.path('work/reception'), folder.path('plugins/badges'));
    await symlink(folder.path('work/single.ts'), folder.path('plugins/Singles.ts'));
    const both = {
      ...named,
      Hub: { authenticator_class: ['badges', 'Singles'] },
      SingleAuthenticator: { file: 'x' },
    };
    expect(await check(folder, both)).toMatchObject({ code: 0, stderr: '' });
  });

  test('has its own packages beside it, and these have theirs', async () => {
    await using folder = await createPluginFolder();
    const manifest = (name: string) => JSON.stringify({ name, type: 'module', main: 'index.js' });
    await folder.write('plugins/node_modules/turnstile/package.json', manifest('turnstile'));
    await folder.write('plugins/node_modules/turnstile/index.js', "export { old } from 'zod';\n");
    await folder.write('plugins/node_modules/zod/package.json', manifest('zod'));
    await folder.write('plugins/node_modules/zod/index.js', "export const old = 'old';\n");
    const own = badges.replace('import { z }', "import { old } from 'turnstile';\nimport { z }");
    await folder.write('plugins/badges.ts', own.replace('HubAuth.name', 'old + HubAuth.name'));
    expect(await check(folder)).toMatchObject({ code: 0, stderr: '' });
  });

  test('gives nothing to files elsewhere', async () => {
    await using folder = await createPluginFolder();
    await folder.write('shared.ts', "export { z } from 'zod';\n");
    await folder.write('plugins/badges.ts', badges.replace("from 'zod'", "from '../shared.ts'"));
    const { problems, code } = await checkByCommand(folder);
    expect(problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.ts')} cannot be loaded: Cannot find package 'zod' imported from ${folder.path('shared.ts')}; install it there`,
    ]);
    expect(code).toBe(2);
  });
});

describe('a plugin that cannot be used is told with its place and the way out, and nothing else', () => {
  test.for([
    [
      'a syntax error',
      '7',
      "cannot be loaded: Expected ',', got 'ident'",
      'z.strictObject({ file: z.string().min(1) })',
      '{\n file: 1\n name: 2 }',
    ],
    [
      'syntax that Node.js does not run',
      '5',
      'cannot be loaded: TypeScript enum is not supported in strip-only mode; write it as plain JavaScript with types',
      'const optionsSchema',
      'enum Level { low }\nconst optionsSchema',
    ],
    [
      'an error while it is loaded',
      '5',
      'cannot be loaded: TypeError: boom',
      'const optionsSchema',
      "throw new TypeError('boom');\nconst optionsSchema",
    ],
    [
      'something else thrown',
      '',
      'cannot be loaded: no badge reader',
      'const optionsSchema',
      "if (plugin === undefined) throw 'no badge reader';\nconst optionsSchema".replace(
        'plugin === undefined',
        'true',
      ),
    ],
    [
      'a package that is not there',
      '',
      "cannot be loaded: Cannot find package 'turnstile' imported from FOLDER/plugins/badges.ts; install it there",
      "import { z } from 'zod'",
      "import { z } from 'turnstile'",
    ],
    [
      'a package of a scope',
      '',
      "cannot be loaded: Cannot find package '@acme/turnstile' imported from FOLDER/plugins/badges.ts; install it there",
      "import { z } from 'zod'",
      "import { z } from '@acme/turnstile/zod'",
    ],
    [
      'a file that is not there',
      '',
      "cannot be loaded: Cannot find module 'FOLDER/plugins/reader.ts' imported from FOLDER/plugins/badges.ts; name an existing file, with its extension",
      "import { z } from 'zod'",
      "import { z } from './reader.ts'",
    ],
    [
      'a file without its extension',
      '',
      "cannot be loaded: Cannot find module 'FOLDER/plugins/badges' imported from FOLDER/plugins/badges.ts; name an existing file, with its extension",
      "import { z } from 'zod'",
      "import { z } from './badges'",
    ],
    [
      'a part of the hub that is not public',
      '',
      /cannot be loaded: Package subpath '.\/server' is not defined by "exports" .*; plugins may import @hub-gateway\/hub\/client, @hub-gateway\/hub\/plugin and @hub-gateway\/hub\/testing$/,
      "'@hub-gateway/hub/client'",
      "'@hub-gateway/hub/server'",
    ],
    [
      'the hub as a whole',
      '',
      /cannot be loaded: No "exports" main defined .*; plugins may import @hub-gateway\/hub\/client, @hub-gateway\/hub\/plugin and @hub-gateway\/hub\/testing$/,
      "'@hub-gateway/hub/client'",
      "'@hub-gateway/hub'",
    ],
    [
      'a name that is not exported',
      '2',
      `cannot be loaded: SyntaxError: The requested module '@hub-gateway/hub/plugin' does not provide an export named 'AuthenticatorPlugin'; if it is a type, write "import type"`,
      'import type',
      'import',
    ],
  ] as const)('%s', async ([, line, message, original, changed]) => {
    await using folder = await createPluginFolder();
    const text = badges.replace(original, changed);
    expect(text).not.toBe(badges);
    await folder.write('plugins/badges.ts', text);
    const { problems, code } = await check(folder);
    const place = `${folder.path('plugins/badges.ts')}${line === '' ? '' : `:${line}`}`;
    expect(problems).toEqual([
      typeof message === 'string'
        ? `Hub.authenticator_class: ${place} ${message.replaceAll('FOLDER', folder.directory)}`
        : expect.stringMatching(message),
    ]);
    expect(problems[0]).toContain(`Hub.authenticator_class: ${place} `);
    expect(code).toBe(2);
  });

  test('a syntax error of JavaScript, with its line too', async () => {
    await using folder = await createPluginFolder();
    await folder.write(
      'plugins/badges.js',
      "export default {\n  kind: 'authenticator'\n  name: 'badges',\n};\n",
    );
    const { problems } = await check(folder);
    expect(problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.js')}:3 cannot be loaded: SyntaxError: Unexpected identifier 'name'`,
    ]);
  });

  test('an error while it looks for problems', async () => {
    await using folder = await createPluginFolder();
    const own = '  findProblems() {\n    throw new RangeError();\n  },\n  create: ';
    await folder.write('plugins/badges.ts', badges.replace('  create: ', own));
    const { problems } = await check(folder);
    expect(problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.ts')}:13 fails in findProblems: RangeError`,
    ]);
  });

  test('a plugin of the other kind, with the setting it belongs in', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/badges.ts', badges);
    const file = folder.path('plugins/badges.ts');
    expect((await check(folder, { Spawner: { class: 'badges' } })).problems).toEqual([
      `Spawner.class: "badges" in ${file} is an authenticator, not a spawner; name it in Hub.authenticator_class`,
    ]);
    const wrong = await check(folder, { Hub: { authenticator_class: 'local-process' } });
    expect(wrong.problems).toEqual([
      expect.stringMatching(
        /^Hub\.authenticator_class: "local-process" in .* is a spawner, not an authenticator; name it in Spawner\.class$/,
      ),
    ]);
  });

  test('but what is wrong besides is told as well', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/badges.ts', 'export default {');
    const { problems } = await check(folder, { ...named, bind_url: {} });
    expect(problems).toEqual([
      expect.stringContaining('Hub.authenticator_class: '),
      'bind_url: belongs in the section Hub',
    ]);
  });

  test('a section that belongs to no plugin is compared by what is its own in the name', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/other.ts', 'throw new RangeError();');
    const { problems } = await check(folder, { BadgeAuthenticator: {}, GogleAuthenticator: {} });
    const unread = `${folder.path('plugins/other.ts')}:1 cannot be loaded: RangeError`;
    expect(problems).toEqual([
      `BadgeAuthenticator: is not a section of the hub or of a plugin; ${unread}`,
      `GogleAuthenticator: is not a section of the hub or of a plugin; did you mean \`GoogleAuthenticator\`?; ${unread}`,
    ]);
  });
});

describe('a plugin that creates something else than its contract says', () => {
  const start = badges.indexOf('  create: ');
  /** The plugin with another `create` and what else it shall have. */
  const creating = (text: string) =>
    `${badges.slice(0, start)}${text},\n};\n\nexport default plugin;\n`;
  const form = "{ kind: 'form', label: 'Badge', fields }";
  const fields =
    "const fields = [{ name: 'username', label: 'Badge', type: 'text', autocomplete: 'username' }];\n";

  test.for([
    [
      'a form login without authenticate',
      `create: () => ({ login: ${form} })`,
      'creates no authenticator: authenticate: must be a function',
    ],
    [
      'an external login that only begins',
      "create: () => ({ login: { kind: 'external', label: 'x' }, beginLogin() {} })",
      'creates no authenticator: completeLogin: must be a function',
    ],
    [
      'a login by header without identify',
      "create: () => ({ login: { kind: 'request', label: 'x' }, authenticate() {} })",
      'creates no authenticator: identify: must be a function',
    ],
    [
      'a kind of login that there is not',
      "create: () => ({ login: { kind: 'badge' } })",
      'creates no authenticator: login.kind: Invalid option: expected one of "form"|"external"|"request"',
    ],
    [
      'nothing',
      'create() {}',
      'creates no authenticator: Invalid input: expected object, received undefined',
    ],
    [
      'a form without a user name',
      "create: () => ({ login: { kind: 'form', label: 'x', fields: [{ name: 'pin', label: 'PIN', type: 'password', autocomplete: '' }] }, authenticate() {} })",
      'creates no authenticator: login.fields: must hold one called "username", by which failed attempts are counted',
    ],
    [
      'a hook that is no function',
      `create: () => ({ login: ${form}, authenticate() {}, refreshUser: true })`,
      'creates no authenticator: refreshUser: must be a function',
    ],
  ] as const)('%s', async ([, create, message]) => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/badges.ts', fields + creating(create));
    const { problems, code } = await check(folder);
    expect(problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.ts')} ${message}`,
    ]);
    expect(code).toBe(2);
  });

  test.for([
    [
      'that fails',
      "create() {\n    throw new RangeError('no reader');\n  }",
      ':13',
      'fails in create: RangeError: no reader',
    ],
    [
      'that needs a running hub',
      "async create(_options, host) {\n    await host.settings.find('key');\n  }",
      ':13',
      'fails in create: Error: settings.find works once the hub runs: use it in open or later',
    ],
  ] as const)('with a create %s', async ([, create, line, message]) => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/badges.ts', creating(create));
    const { problems } = await check(folder);
    expect(problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.ts')}${line} ${message}`,
    ]);
  });

  test('or with an open that fails is told at the start of the hub', async () => {
    await using folder = await createPluginFolder();
    const own = badges.replace(
      'authenticate:',
      "open() {\n      throw new Error('no reader');\n    },\n    authenticate:",
    );
    await folder.write('plugins/badges.ts', own);
    const addresses = {
      bind_url: `http://127.0.0.1:${await freePort()}`,
      hub_bind_url: `http://127.0.0.1:${await freePort()}`,
    };
    const config = { ...named, Hub: { ...named.Hub, ...addresses } };
    expect(await check(folder, config)).toMatchObject({ code: 0 });
    const { code, stderr } = await folder.hub('start');
    expect(code).toBe(1);
    expect(stderr).toContain(
      `the authenticator "badges" cannot start: ${folder.path('plugins/badges.ts')}:19 fails in open: Error: no reader\n`,
    );
  });

  test('ends the check also where it left something open', async () => {
    await using folder = await createPluginFolder();
    const own = badges.replace(
      'create: ({ file }) => ({',
      'create: ({ file }) => (setInterval(() => {}, 1000), {',
    );
    await folder.write('plugins/badges.ts', own);
    const { code, stderr } = await checkByCommand(folder);
    expect(code).toBe(0);
    expect(stderr).toContain('A plugin opens connections and starts timers in open, not in create');
  });

  test.for([
    [
      'of a later contract',
      'contract: 2, ',
      'is written for version 2 of the plugin contract, and this hub takes version 1; install a release of the plugin for that version, or a hub for this one',
    ],
    [
      'of a contract that is none',
      "contract: 'new', ",
      "is written for version 'new' of the plugin contract, and this hub takes version 1; install a release of the plugin for that version, or a hub for this one",
    ],
  ] as const)('%s is told by that alone', async ([, contract, message]) => {
    await using folder = await createPluginFolder();
    const own = badges.replace("name: 'badges',", `${contract} name: 'bad ges',`);
    await folder.write('plugins/badges.ts', own);
    expect((await check(folder)).problems).toEqual([
      `Hub.authenticator_class: ${folder.path('plugins/badges.ts')} ${message}`,
    ]);
  });

  test('says the contract that it is written for, if it likes', async () => {
    await using folder = await createPluginFolder();
    await folder.write(
      'plugins/badges.ts',
      badges.replace("name: 'badges',", "contract: 1, name: 'badges',"),
    );
    expect(await check(folder)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('a spawner in a folder without packages', () => {
  const barracks = `import type { SpawnerPlugin } from '@hub-gateway/hub/plugin';
import { z } from 'zod';

const optionsSchema = z.strictObject({ key: z.string(), rooms: z.number().default(1) });

const plugin: SpawnerPlugin<z.output<typeof optionsSchema>> = {
  kind: 'spawner',
  name: 'barracks',
  section: 'BarracksSpawner',
  optionsSchema,
  secretOptions: ['key'],
  findProblems: ({ key, rooms }, { hubTitle }) =>
    rooms > 0 && key === 'the key' ? [] : [{ option: 'rooms', message: \`too few for \${hubTitle}\` }],
  create: () => ({
    start: () => Promise.reject(new Error('There is no room.')),
    stop: async () => undefined,
    poll: async () => ({ running: false }),
    restore: async () => undefined,
  }),
};

export default plugin;
`;
  const named = {
    Spawner: { class: 'barracks' },
    BarracksSpawner: { key: { file: 'key.txt' } },
  };

  test('imports the same, and has secrets and checks of its own', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/barracks.ts', barracks);
    await folder.write('key.txt', 'the key\n');
    expect(await check(folder, named)).toMatchObject({ code: 0 });
    const few = { ...named, BarracksSpawner: { key: { file: 'key.txt' }, rooms: 0 } };
    expect((await check(folder, few)).problems).toEqual(['BarracksSpawner.rooms: too few for Hub']);
    const missing = { ...named, BarracksSpawner: { key: { env: 'NO_SUCH_KEY' } } };
    expect((await check(folder, missing)).problems).toEqual([
      'BarracksSpawner.key: the environment variable NO_SUCH_KEY is not set',
    ]);
  });

  test('is refused without what every spawner does', async () => {
    await using folder = await createPluginFolder();
    await folder.write('plugins/barracks.ts', barracks.replace(/ {4}poll: .*\n/, ''));
    await folder.write('key.txt', 'the key\n');
    expect((await check(folder, named)).problems).toEqual([
      `Spawner.class: ${folder.path('plugins/barracks.ts')} creates no spawner: poll: must be a function`,
    ]);
  });
});
