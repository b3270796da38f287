import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { formPluginSource } from '../support/form-plugin.ts';
import { hasPostgres } from '../support/postgres.ts';
import { runCommand } from '../support/run-command.ts';
import { adminToken } from '../support/server-hub.ts';
import {
  createTestHub,
  type TestHub,
  type TestHubConfig,
  testCookieSecret,
  until,
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

test('hub service stops, starts and restarts what the running hub manages', async () => {
  const { Hub, ...rest } = config();
  const services = [
    { name: 'ticker', command: [process.execPath, '-e', 'setInterval(() => {}, 1e6)'] },
  ];
  await using hub = await createTestHub({ ...rest, Hub: { ...Hub, services } });
  const service = (args: string) => runCommand(hub.directory, ['service', ...args.split(' ')]);
  const pid = async () => {
    const answer = await hub.api('/services/ticker', adminToken);
    return ((await answer.json()) as { pid: number | null }).pid;
  };
  await until(async () => (await pid()) !== null, 'the service runs');
  const first = await pid();
  expect((await service('restart ticker')).stdout).toBe('ticker: The service is restarting.\n');
  await until(async () => ![null, first].includes(await pid()), 'another process runs');
  expect((await service('stop ticker')).exitCode).toBe(0);
  await until(async () => (await pid()) === null, 'it is stopped');
  expect((await service('start ticker')).exitCode).toBe(0);
  await until(async () => (await pid()) !== null, 'it runs again');
  expect((await service('restart tacker')).stderr).toBe('There is no such service.\n');
});

test('hub server starts and stops servers through the running hub', async () => {
  const { Hub, ...rest } = config();
  await using hub = await createTestHub({ ...rest, Hub: { ...Hub, allow_named_servers: true } });
  await createUser(hub, 'ada');
  const server = (args: string) => runCommand(hub.directory, ['server', ...args.split(' ')]);
  const isReady = async (path: string) =>
    ((await (await hub.api(path, adminToken)).json()) as { ready: boolean }).ready;
  for (const [args, path] of [
    ['ada', '/users/ada/server'],
    ['ada work', '/users/ada/servers/work'],
  ] as const) {
    expect((await server(`start ${args}`)).stdout).toMatch(
      /^The server is (?:running|starting)\.\n$/,
    );
    await until(() => isReady(path), 'it runs');
    expect((await server(`stop ${args}`)).stdout).toMatch(
      /^The server (?:has stopped|is stopping)\.\n$/,
    );
    await until(async () => !(await isReady(path)), 'it is stopped');
  }
  expect((await server('start eve')).stderr).toBe('There is no such user.\n');
  const { entries } = (await (
    await hub.api('/audit?action=server.stop&target=ada', adminToken)
  ).json()) as { entries: unknown };
  const actor = { kind: 'command_line', name: userInfo().username };
  expect(entries).toMatchObject([{ actor }, { actor }]);
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
      expect((await hub('keys list')).stderr).toContain('There is none yet');
      expect((await hub('keys rotate')).exitCode).toBe(0);
      const keyLine = /^[\w-]{16}\t(?:RS|ES)256\t(?:active|next)\t\S+Z\t(?:-|\S+Z)$/;
      const keyLines = (await hub('keys list')).stdout.trimEnd().split('\n');
      expect(keyLines.map((line) => keyLine.test(line))).toEqual([true, true, true, true]);
      const [revoked = ''] = keyLines[0]?.split('\t') ?? [];
      expect((await hub(`keys revoke ${revoked}`)).exitCode).toBe(0);
      expect((await hub('keys list')).stdout).not.toContain(revoked);
      expect((await hub(`keys revoke ${revoked}`)).stderr).toContain('There is no such key.');
      const invited = await hub('user invite ada');
      expect(invited.stdout).toMatch(/^http:\S+\/hub\/invitation\?secret=[\w-]{43}\n$/);
      expect(invited.stderr).toMatch(/^For ada, once, until .* UTC\.\n$/);
      expect((await hub('service restart ticker')).stderr).toBe(
        'No hub runs on this database.\nStart one with: hub start\n',
      );
      const later = '2126-01-29T18:00:00Z';
      expect(await hub(`maintenance begin --text Disks. --at ${later} --for 2h`)).toMatchObject({
        stdout: 'Maintenance begins at 2126-01-29 18:00 UTC, until 2126-01-29 20:00 UTC.\n',
      });
      expect((await hub('maintenance begin --at tomorrow')).stderr).toContain('with its zone');
      expect((await hub('maintenance begin')).stdout).toContain('Maintenance is on');
      expect((await hub('status')).stdout).toContain('no servers are started');
      expect((await hub('maintenance end')).stdout).toContain('servers can be started');
      expect((await hub('user delete bob --yes')).exitCode).toBe(0);
      expect(await readFile(calls, 'utf8')).toBe(deletionsOf('bob'));
      expect((await hub('user delete ada --yes')).stderr).toContain(
        'The last administrator stays.',
      );
    });

    test('make, list, fill, empty and delete groups', async () => {
      for (const name of ['ada', 'bob']) await hub(`user add ${name} --no-password`);
      expect((await hub('group list')).stdout).toMatch(/^There are no groups yet\./);
      expect((await hub('user group ada')).stderr).toBe('ada is in no group.\n');
      const made = await hub('group create makers ada');
      expect(made).toMatchObject({ exitCode: 0, stdout: 'Created the group makers.\n' });
      expect((await hub('group create makers')).exitCode).toBe(1);
      expect((await hub('group add makers bob')).stdout).toBe('Members of makers: ada, bob.\n');
      expect((await hub('group add makers eve')).exitCode).toBe(1);
      expect((await hub('user group bob')).stdout).toBe('makers\tapi\n');
      expect((await hub('group remove makers ada bob')).stdout).toBe('Members of makers: none.\n');
      expect((await hub('group list')).stdout).toMatch(/^makers {8}0 {2}api$/m);
      expect(await hub('group delete makers')).toMatchObject({ exitCode: 1, stdout: '' });
      expect((await hub('group delete makers --yes')).stdout).toBe('Deleted makers.\n');
      expect((await hub('group delete makers --yes')).exitCode).toBe(1);
    });

    test('import users of a list, say what is wrong with a line, and undo it', async () => {
      await hub('user add bob --no-password');
      await hub('group create stats');
      const file = join(folder, 'people.csv');
      const lines = [
        'Username;Name;E-Mail;Group',
        's1;Zoë Müller;s1@uni.example;stats',
        'bob;;;',
        'S1;;;',
        '=cmd;;;',
        'far;;;nowhere',
        'mia@uni.example;;;',
      ];
      // As spreadsheets of Windows write it.
      await writeFile(file, lines.join('\r\n'), 'latin1');
      const asked = await hub('user import people.csv');
      expect(asked).toMatchObject({ exitCode: 1, stdout: '' });
      expect(asked.stderr).toMatch(
        /^line 3: bob: exists\nline 4: s1: duplicate\nline 5: =cmd: invalid: .*formula.*\nline 6: far: invalid: .*\nNothing was done\./,
      );
      expect(JSON.parse((await hub('user list --json')).stdout)).toHaveLength(1);
      expect((await hub('user import people.csv --yes')).stdout).toBe('Users created: 2.\n');
      expect((await hub('user group s1')).stdout).toBe('stats\tapi\n');
      expect((await hub('user import people.csv --yes')).stderr).toMatch(
        /None of these users can be created\.\n$/,
      );
      expect((await hub('user import nowhere.csv --yes')).stderr).toContain(
        'there is no such file',
      );
      await hub('user add late --no-password');
      const undone = await hub('user import people.csv --undo --yes');
      expect(undone.stdout).toBe('Users deleted: 2.\n');
      expect(undone.stderr).toMatch(
        /^line 3: bob: kept: .*\nline 4: S1: kept: .*\nline 5: =cmd: kept: /,
      );
      expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
        { name: 'bob' },
        { name: 'late' },
      ]);
    });
  });
});
