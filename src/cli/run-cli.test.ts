import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createPasswordHasher } from '../authentication/password-hash.ts';
import { ConfigError } from '../errors.ts';
import { createAccessTokenStore } from '../oauth/tokens/access-token-store.ts';
import { createLoginSessionStore } from '../sessions/login-session-store.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';
import { createPasswordCredentialStore } from '../users/password-credential-store.ts';
import { createUserStore } from '../users/user-store.ts';
import type { StartHub } from './cli-io.ts';
import { runCli } from './run-cli.ts';

const root = mkdtempSync(join(tmpdir(), 'hub-cli-'));
afterAll(() => rmSync(root, { recursive: true }));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(root, 'case-'));
  writeConfig({});
});

const password = 'purple elephants dance';

function writeConfig(content: object): void {
  writeFileSync(join(directory, 'hub.config.json'), JSON.stringify(content));
}

interface Terminal {
  /** What comes through a pipe. */
  readonly piped?: string;
  /** What a person types at a terminal. */
  readonly typed?: string;
  readonly startHub?: StartHub;
  readonly env?: Record<string, string>;
}

async function hub(args: string, { piped, typed, startHub, env = {} }: Terminal = {}) {
  const output = { stdout: '', stderr: '' };
  const rawModes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), {
    isTTY: typed !== undefined,
    setRawMode: (isRaw: boolean) => rawModes.push(isRaw),
  });
  stdin.end(piped ?? typed ?? '');
  const exitCode = await runCli(args.match(/"[^"]*"|\S+/g)?.map(unquote) ?? [], {
    stdin,
    stdout: { write: (text: string) => (output.stdout += text) },
    stderr: { write: (text: string) => (output.stderr += text) },
    env,
    directory,
    startHub: startHub ?? (() => Promise.reject(new Error('the hub must not start'))),
    startGateway: () => Promise.reject(new Error('no gateway is started here')),
  });
  return { exitCode, rawModes, ...output };
}

function unquote(text: string): string {
  return text.replaceAll('"', '');
}

async function withDatabase<T>(work: (database: HubDatabase) => Promise<T>): Promise<T> {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
  return await work(database);
}

describe('hub', () => {
  test('explains itself and its commands', async () => {
    const { exitCode, stdout } = await hub('--help');
    expect(exitCode).toBe(0);
    for (const command of ['start', 'check', 'reload', 'user', 'token', 'schema']) {
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
    }
    expect((await hub('token --help')).stdout).toContain('--expires-in');
  });

  test('tells its version', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
    );
    expect(await hub('--version')).toMatchObject({ exitCode: 0, stdout: `${version}\n` });
  });

  test.for(['frobnicate', 'start --no-such-option', 'token', ''])(
    'answers a wrong use (%s) with exit code 1 and help',
    async (args) => {
      const { exitCode, stderr } = await hub(args);
      expect(exitCode).toBe(1);
      expect(stderr).not.toBe('');
    },
  );
});

describe('hub check', () => {
  test('sums up what is fine', async () => {
    writeConfig({
      Hub: { services: [{ name: 'wiki', url: 'http://127.0.0.1:9/', api_token: 'long enough' }] },
    });
    const { exitCode, stdout, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('hub.config.json is fine');
    expect(stdout).toContain('services        1 (0 managed)');
    expect(stderr).toBe('');
    expect(existsSync(join(directory, 'hub_cookie_secret'))).toBe(false);
    expect(existsSync(join(directory, 'hub.sqlite'))).toBe(false);
  });

  test('lists the problems of every part at once and exits with 2', async () => {
    writeConfig({
      Hub: {
        titel: 'x',
        services: [{ name: 'a', url: 'http://127.0.0.1:9/', api_token: 'short' }],
        load_roles: [{ name: 'reader', scopes: ['read:nothing'], services: ['b'] }],
        load_groups: [{ name: 'a/b' }],
        custom_scopes: { 'custom:x y': { description: 'x' } },
        authenticator_class: 'nope',
      },
      Authenticator: { allowed_users: ['a/b'] },
      Unknown: {},
    });
    writeFileSync(join(directory, 'hub_cookie_secret'), 'short', { mode: 0o600 });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(2);
    for (const path of [
      'Hub.titel:',
      'Hub.services[0].api_token:',
      'Hub.load_roles[0].scopes[0]:',
      'Hub.load_roles[0].services[0]:',
      'Hub.load_groups[0].name:',
      'Hub.custom_scopes["custom:x y"]:',
      'Hub.authenticator_class:',
      'Authenticator.allowed_users[0]:',
      'Hub.cookie_secret_file:',
      'Unknown:',
    ]) {
      expect(stderr.replace('custom_scopes.custom:x y', 'custom_scopes["custom:x y"]')).toContain(
        `\n  ${path} `,
      );
    }
  });

  test('prints warnings and succeeds', async () => {
    writeConfig({ Authenticator: { allow_all: true, allowed_users: ['ada'] } });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^warning: Authenticator\.allowed_users: /);
  });

  test('recommends an origin for each user where users run code on that of the hub', async () => {
    const recommended = /^recommended: Hub\.subdomain_host: .* http:\/\/127\.0\.0\.1:8000 /m;
    writeConfig({ Spawner: { cmd: ['true'] } });
    expect((await hub('check')).stdout).toMatch(recommended);
    writeConfig({});
    expect((await hub('check')).stdout).not.toContain('recommended');
    writeConfig({
      Hub: {
        public_url: 'http://hub.localhost:8000/',
        subdomain_host: 'http://hub.localhost:8000',
      },
      Spawner: { cmd: ['true'] },
    });
    const separate = await hub('check');
    expect(separate.stdout).not.toContain('recommended');
    expect(separate.stderr).toMatch(/^warning: Hub\.subdomain_host: .* is plain http/m);
  });

  test('warns of programs that are not there, and of no others', async () => {
    const cwd = join(directory, 'app');
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeConfig({
      Hub: {
        services: [
          { name: 'gone', command: ['no-such-program', '--port=1'] },
          { name: 'here', command: ['sh', '-c', 'true'] },
          { name: 'own-path', command: ['run.sh'], environment: { PATH: cwd } },
          { name: 'own-folder', command: ['./run.sh'], cwd: 'app' },
          { name: 'elsewhere', url: 'http://127.0.0.1:9' },
        ],
      },
      Spawner: {
        cmd: ['jupyterhub-no-such', '{username}'],
        profiles: [
          { name: 'a', cmd: ['hub-singleuser', '--', 'true'] },
          { name: 'b', cmd: ['{directory}/app/run.sh'] },
          { name: 'c', cmd: ['/opt/{username}/run'] },
          { name: 'd', cmd: ['/no/such/program'] },
        ],
      },
    });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    expect(stderr.split('\n').filter((line) => line.includes('command'))).toEqual([
      'warning: Hub.services[0].command: command not found in PATH: no-such-program',
      'warning: Spawner.cmd: command not found in PATH: jupyterhub-no-such',
      'warning: Spawner.profiles[3].cmd: command not found: /no/such/program',
    ]);
  });

  test('takes another file', async () => {
    writeFileSync(join(directory, 'other.json'), '{"Hub": {"bind_url": "http://127.0.0.1:8765/"}}');
    expect((await hub('check --config other.json')).stdout).toContain('http://127.0.0.1:8765/');
    expect((await hub('check --config missing.json')).exitCode).toBe(2);
  });

  test('shows the example to be fine', async () => {
    const example = join(import.meta.dirname, '../../hub.config.example.json');
    const { exitCode, stdout, stderr } = await hub(`check --config ${example}`);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('services        2 (2 managed)');
  });
});

describe('hub user', () => {
  test('add takes a password from a pipe and keeps its hash', async () => {
    const added = await hub('user add Ada --admin --password-stdin', { piped: `${password}\n` });
    expect(added).toMatchObject({ exitCode: 0, stdout: 'Created the administrator ada.\n' });
    await withDatabase(async (database) => {
      expect(await createUserStore(database).getByName('ada')).toMatchObject({
        isAdmin: true,
        isInvited: true,
      });
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      expect(stored?.mustChange).toBe(false);
      const result = await createPasswordHasher().verify(password, stored?.passwordHash);
      expect(result).toEqual({ matches: true, needsRehash: false });
    });
  });

  test('add asks twice at a terminal and never shows what is typed', async () => {
    const typed = `${password}x\u007F\r${password}\r`;
    const added = await hub('user add ada', { typed });
    expect(added).toMatchObject({ exitCode: 0, rawModes: [true, false, true, false] });
    expect(added.stderr).toBe('New password: \nThe same again: \n');
    await withDatabase(async (database) => {
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      const { matches } = await createPasswordHasher().verify(password, stored?.passwordHash);
      expect(matches).toBe(true);
    });
  });

  test.for([
    ['two different passwords', `${password}\rsomething else\r`, 'The two passwords differ.'],
    ['Ctrl-C', `${password}\u0003`, 'Cancelled.'],
    ['the end of input', 'half a passw', 'Cancelled.'],
    ['a weak password', 'password1234\rpassword1234\r', 'tried first'],
  ] as const)('add stops at %s and makes no account', async ([, typed, message]) => {
    const added = await hub('user add ada', { typed });
    expect(added.exitCode).toBe(1);
    expect(added.stderr).toContain(message);
    expect((await hub('user list')).stdout).toContain('There are no users yet');
  });

  test('add without terminal or pipe says what to do', async () => {
    const added = await hub('user add ada');
    expect(added.exitCode).toBe(1);
    expect(added.stderr).toContain('--password-stdin');
  });

  test('add can leave the password out, and refuses a name that exists or cannot be', async () => {
    expect((await hub('user add ada --no-password')).exitCode).toBe(0);
    expect((await hub('user add ADA --no-password')).stderr).toContain('ada exists already');
    expect((await hub('user add a/b --no-password')).exitCode).toBe(1);
  });

  test('passwd sets another password and ends all logins of the user', async () => {
    await hub('user add ada --no-password');
    const userId = await withDatabase(async (database) => {
      const { id } = await createUserStore(database).getByName('ada');
      await createLoginSessionStore(database).create({
        sessionId: 'a-session',
        userId: id,
        authenticator: 'password',
        identityId: undefined,
        createdAt: new Date(),
        expiresAt: new Date(Date.now() + 60_000),
        address: '192.0.2.1',
        userAgent: '',
        upstreamSessionId: undefined,
        idTokenSealed: undefined,
      });
      return id;
    });
    const changed = await hub('user passwd ada --password-stdin --must-change', {
      piped: 'another fine phrase',
    });
    expect(changed.exitCode).toBe(0);
    await withDatabase(async (database) => {
      expect(await createLoginSessionStore(database).listOfUser(userId)).toEqual([]);
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      expect(stored?.mustChange).toBe(true);
    });
    expect((await hub('user passwd bob --password-stdin')).stderr).toContain('no user bob');
  });

  test('passwd tells of API tokens that go on, and ends them when it is asked to', async () => {
    await hub('user add ada --no-password');
    await hub('token ada');
    const piped = 'another fine phrase';
    const kept = await hub('user passwd ada --password-stdin', { piped });
    expect(kept.stdout).toContain('API tokens that they keep: 1; --end-tokens ends those too.');
    const ended = await hub('user passwd ada --password-stdin --end-tokens', { piped });
    expect(ended.stdout).toContain('all their logins and API tokens have ended');
    await withDatabase(async (database) => {
      const { id } = await createUserStore(database).getByName('ada');
      expect(await createAccessTokenStore({ database }).countOfUser(id)).toBe(0);
    });
  });

  test('account shows whose files the servers of a user have, and gives them others', async () => {
    for (const name of ['ada', 'bob']) await hub(`user add ${name} --no-password`);
    expect((await hub('user account ada')).stdout).toMatch(/^not decided; ada if free/);
    expect((await hub('user account ada files')).exitCode).toBe(0);
    expect((await hub('user account ada')).stdout).toBe('files\n');
    const taken = await hub('user account bob files');
    expect(taken).toMatchObject({ exitCode: 1 });
    expect(taken.stderr).toMatch(/files belongs to ada[\s\S]*Give ada another one/);
    expect((await hub('user account bob a/b')).exitCode).toBe(1);
    await hub('user delete ada --yes');
    expect((await hub('user account bob files')).exitCode).toBe(0);
    expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
      { name: 'bob', system_account: 'files' },
    ]);
  });

  test('list shows everybody, as a table or as JSON', async () => {
    await hub('user add ada --admin --no-password');
    await hub('user add bob --no-password');
    expect((await hub('user list')).stdout).toMatch(
      /^ada {3}admin {2}never\nbob {3}user {3}never$/m,
    );
    expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
      { name: 'ada', admin: true },
      { name: 'bob', admin: false },
    ]);
  });

  test('delete asks, and deletes only when it is confirmed', async () => {
    await hub('user add ada --no-password');
    expect(await hub('user delete ada')).toMatchObject({ exitCode: 1 });
    expect(await hub('user delete ada', { typed: 'n\n' })).toMatchObject({ exitCode: 1 });
    expect(await hub('user delete ada', { typed: 'y\n' })).toMatchObject({
      exitCode: 0,
      stdout: 'Deleted ada.\n',
    });
    expect((await hub('user delete ada --yes')).stderr).toContain('no user ada');
  });
});

describe('hub token', () => {
  test('prints a token and nothing else, with scopes, note and lifetime as asked', async () => {
    await hub('user add ada --no-password');
    const made = await hub(
      'token Ada --note "for tests" --expires-in 2d --scopes "list:users, read:groups"',
    );
    expect(made.exitCode).toBe(0);
    expect(made.stdout).toMatch(/^hub_[\w-]{43}\n$/);
    await withDatabase(async (database) => {
      const user = await createUserStore(database).getByName('ada');
      const [token] = await createAccessTokenStore({ database }).listOfUser(user.id);
      expect(token).toMatchObject({ note: 'for tests', scopes: ['list:users', 'read:groups'] });
      const lifetimeMs = (token?.expiresAt?.getTime() ?? 0) - (token?.createdAt.getTime() ?? 0);
      expect(Math.round(lifetimeMs / 1000)).toBe(2 * 86_400);
    });
  });

  test('refuses unknown users, scopes and lifetimes', async () => {
    await hub('user add ada --no-password');
    expect((await hub('token bob')).stderr).toContain('There is no user bob.');
    expect((await hub('token ada --scopes nope')).stderr).toContain('there is no scope "nope"');
    expect((await hub('token ada --expires-in never')).exitCode).toBe(1);
    expect((await hub('token ada --expires-in 0')).exitCode).toBe(1);
    writeConfig({ Hub: { token_expires_in_max_seconds: 3600 } });
    expect((await hub('token ada --expires-in 2h')).stderr).toContain('3600 seconds at most');
    expect((await hub('token ada')).exitCode).toBe(1);
    expect((await hub('token ada --expires-in 1h')).exitCode).toBe(0);
  });
});

describe('hub schema', () => {
  test('describes the hub and its plugins, secrets included', async () => {
    const { stdout } = await hub('schema');
    const schema = JSON.parse(stdout);
    expect(Object.keys(schema.properties)).toEqual(
      expect.arrayContaining(['$schema', 'Hub', 'Authenticator', 'Spawner', 'Proxy']),
    );
    const { properties } = schema.properties.DummyAuthenticator;
    expect(properties.password.anyOf).toHaveLength(3);
    expect(schema.properties.Hub.properties.bind_url.default).toBe('http://127.0.0.1:8000/');
  });

  test('hub.schema.json is what it prints; if not: npm run schema', async () => {
    const file = join(import.meta.dirname, '../../hub.schema.json');
    expect(readFileSync(file, 'utf8')).toBe((await hub('schema')).stdout);
  });
});

describe('hub start', () => {
  test('hands the checked configuration and its plugins to the hub', async () => {
    writeConfig({ Hub: { title: 'Lab' } });
    const started = await hub('start', {
      async startHub({ checked, reload }) {
        expect(checked.config.Hub.title).toBe('Lab');
        expect(checked.plugins.authenticators).toHaveLength(1);
        writeConfig({ Hub: { title: 'New' } });
        expect((await reload()).config.Hub.title).toBe('New');
        writeConfig({ Hub: { titel: 'New' } });
        await expect(reload()).rejects.toBeInstanceOf(ConfigError);
      },
    });
    expect(started).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('exits with 2 for a wrong configuration, without starting', async () => {
    writeConfig({ Hub: { titel: 'x' } });
    expect(await hub('start')).toMatchObject({ exitCode: 2 });
  });

  test('is refused while a hub runs with this file, with its process', async () => {
    let isStarted = false;
    await hub('start', {
      async startHub() {
        const second = await hub('start', {
          async startHub() {
            isStarted = true;
          },
        });
        expect(second.exitCode).toBe(1);
        expect(second.stderr).toBe(
          `A hub runs with this configuration already (process ${process.pid}). To change it while it runs: hub reload\n`,
        );
      },
    });
    expect(isStarted).toBe(false);
    const later = await hub('start', { startHub: () => Promise.resolve() });
    expect(later).toMatchObject({ exitCode: 0 });
  });

  test('exits with 1 when the hub cannot start', async () => {
    const failed = await hub('start', { startHub: () => Promise.reject(new Error('EADDRINUSE')) });
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toContain('EADDRINUSE');
  });
});

describe('hub reload', () => {
  test('signals the hub that runs with this file, and only while it runs', async () => {
    const signalled = Promise.withResolvers<void>();
    const onSignal = () => signalled.resolve();
    process.on('SIGHUP', onSignal);
    try {
      await hub('start', {
        async startHub() {
          const reloaded = await hub('reload');
          expect(reloaded).toMatchObject({ exitCode: 0 });
          expect(reloaded.stdout).toContain(`process ${process.pid}`);
          await signalled.promise;
        },
      });
    } finally {
      process.off('SIGHUP', onSignal);
    }
    expect(await hub('reload')).toMatchObject({ exitCode: 1 });
  });

  test('leaves the hub alone when the new configuration is wrong', async () => {
    await hub('start', {
      async startHub() {
        writeConfig({ Hub: { titel: 'x' } });
        expect(await hub('reload')).toMatchObject({ exitCode: 2 });
      },
    });
  });
});
