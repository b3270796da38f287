import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runCommand } from '../support/command-line.ts';
import { usePostgres } from '../support/databases.ts';
import { formPluginSource } from '../support/form-plugin.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import {
  createTestHub,
  type TestHub,
  type TestHubConfig,
  testCookieSecret,
} from '../support/test-hub.ts';

let directory: string;
let calls: string;

/** An authenticator and a spawner that write down what they are asked to delete. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-command-operations-'));
  calls = join(directory, 'calls');
  const plugins = join(directory, 'plugins');
  await mkdir(plugins);
  const write = (call: string) => `appendFileSync(${JSON.stringify(calls)}, ${call} + '\\n')`;
  const imports = "import { appendFileSync } from 'node:fs';";
  const authenticator = formPluginSource({
    name: 'noting',
    imports,
    userFields: '',
    members: `deleteUser: async (name) => ${write("'authenticator ' + name")},`,
  });
  await writeFile(join(plugins, 'noting.ts'), authenticator);
  await writeFile(
    join(plugins, 'noting-spawner.ts'),
    `${imports}
import { once } from 'node:events';
import { createServer } from 'node:http';
import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
export default {
  kind: 'spawner',
  name: 'noting-spawner',
  section: 'NotingSpawner',
  optionsSchema: z.strictObject({}),
  create: () => ({
    start: async () => {
      const server = createServer((_request, response) => response.end());
      server.listen(0, '127.0.0.1').unref();
      await once(server, 'listening');
      return { url: 'http://127.0.0.1:' + server.address().port, state: {} };
    },
    stop: async () => {},
    poll: async () => ({ running: true }),
    restore: async () => undefined,
    delete: async ({ userName }, { withUser }) => ${write("'spawner ' + userName + ' ' + withUser")},
  }),
};`,
  );
});
afterAll(() => rm(directory, { recursive: true }));
beforeEach(() => writeFile(calls, ''));

const config = (): TestHubConfig => ({
  DummyAuthenticator: undefined,
  Hub: { plugins_dir: join(directory, 'plugins'), authenticator_class: 'noting' },
  Spawner: { class: 'noting-spawner', cmd: ['true'] },
});

const deletionsOf = (name: string) => `spawner ${name} true\nauthenticator ${name}\n`;

async function createUser(hub: TestHub, name: string): Promise<void> {
  const { status } = await hub.api(`/users/${name}`, adminToken, { method: 'POST' });
  expect(status).toBe(201);
}

describe('hub user delete', () => {
  test('has the running hub stop servers and delete what spawners and authenticators keep', async () => {
    await using hub = await createTestHub(config());
    await createUser(hub, 'ada');
    const started = await hub.api('/users/ada/server', adminToken, { method: 'POST' });
    expect(started.ok, await started.text()).toBe(true);
    const { exitCode, stdout } = await runCommand(hub.directory, ['user', 'delete', 'ada', '-y']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'Deleted ada.\n' });
    expect(await readFile(calls, 'utf8')).toBe(deletionsOf('ada'));
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({ msg: 'user deleted', user: 'ada' }),
    );
    const answer = await hub.api('/audit?action=user.delete', adminToken);
    const { entries } = (await answer.json()) as { entries: unknown };
    const actor = { kind: 'command_line', name: userInfo().username };
    expect(entries).toMatchObject([{ actor, target: { name: 'ada' } }]);
  });

  test('deletes the same by itself where the hub that runs does not answer to its key', async () => {
    await using hub = await createTestHub(config());
    await createUser(hub, 'ada');
    const file = join(hub.directory, 'hub.config.json');
    const own = JSON.parse(await readFile(file, 'utf8')) as { Hub: object };
    const Hub = { ...own.Hub, cookie_secret: testCookieSecret.toUpperCase() };
    await writeFile(file, JSON.stringify({ ...own, Hub }));
    expect(await runCommand(hub.directory, ['user', 'delete', 'ada', '-y'])).toMatchObject({
      exitCode: 0,
      stdout: 'Deleted ada.\n',
    });
    expect(await readFile(calls, 'utf8')).toBe(deletionsOf('ada'));
    expect(hub.logLines.filter(({ msg }) => msg === 'user deleted')).toEqual([]);
    expect((await hub.api('/users/ada', adminToken)).status).toBe(404);
  });

  test('deletes nothing where a server was left running and no hub can stop it', async () => {
    await using hub = await createTestHub(config());
    await createUser(hub, 'ada');
    await hub.api('/users/ada/server', adminToken, { method: 'POST' });
    await hub.logIn('ada');
    const { directory: folder } = hub;
    await hub.hub[Symbol.asyncDispose]();
    const refused = await runCommand(folder, ['user', 'delete', 'ada', '-y']);
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' });
    expect(refused.stderr).toBe(
      'A server of ada is running.\nStart the hub first, which can stop it: hub start\n',
    );
    expect(await readFile(calls, 'utf8')).toBe('');
    expect((await runCommand(folder, ['status'])).stdout).toContain('Sessions: 1 of 1 user');
  });
});

describe.each(['sqlite', 'postgres'] as const)('before the first start, on %s', (dialect) => {
  describe.skipIf(dialect === 'postgres' && !hasPostgres())('the commands', () => {
    const postgres = dialect === 'postgres' ? usePostgres() : undefined;
    let folder: string;
    const hub = (args: string, piped = '') => runCommand(folder, args.split(' '), { piped });

    beforeEach(async () => {
      folder = await mkdtemp(join(directory, 'folder-'));
      const url = await postgres?.().createEmptyDatabase();
      const { Hub, ...rest } = config();
      const classes = ['password', 'noting'];
      const content = {
        ...rest,
        Hub: { ...Hub, authenticator_class: classes, ...(url && { database_url: url }) },
        Authenticator: { account_authenticator: 'password' },
      };
      await writeFile(join(folder, 'hub.config.json'), JSON.stringify(content));
    });

    test('make, show, change and delete accounts in a process of their own', async () => {
      const link = await hub('setup-link');
      expect(link).toMatchObject({ exitCode: 0, stderr: '' });
      expect(link.stdout).toMatch(/^http:\S+\/hub\/set-up\?secret=[\w-]{43}\n$/);
      const added = await hub('user add ada --admin --password-stdin', 'four words in a row');
      expect(added).toMatchObject({ exitCode: 0, stdout: 'Created the administrator ada.\n' });
      expect((await hub('user add bob --no-password')).exitCode).toBe(0);
      expect((await hub('user passwd bob --password-stdin', 'another four words now')).stderr).toBe(
        '',
      );
      expect((await hub('user account bob files')).exitCode).toBe(0);
      expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
        { name: 'ada', admin: true, system_account: null },
        { name: 'bob', admin: false, system_account: 'files' },
      ]);
      expect((await hub('token bob')).stdout).toMatch(/^hub_/);
      expect((await hub('setup-link')).stderr).toContain('There is an administrator already.');
      expect(await hub('lockouts list')).toMatchObject({
        exitCode: 0,
        stdout: '',
        stderr: 'No user and no address has to wait.\n',
      });
      expect((await hub('lockouts lift user bob')).stderr).toContain('no failed logins');
      expect((await hub('user delete bob --yes')).exitCode).toBe(0);
      expect(await readFile(calls, 'utf8')).toBe(deletionsOf('bob'));
      expect((await hub('user delete ada --yes')).stderr).toContain(
        'The last administrator stays.',
      );
    });
  });
});
