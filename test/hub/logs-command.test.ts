import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHubFolder, type HubFolder, type HubProcess } from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import { until } from '../support/test-hub.ts';

let folder: HubFolder;
let hub: HubProcess;

/** Writes two lines, and one more for each file that appears. */
const ticker = (name: string) => [
  'sh',
  '-c',
  `echo ${name} one; echo ${name} two; n=0; while :; do if [ -e ${name}.$n ]; then echo "${name} go $n"; n=$((n+1)); fi; sleep 0.05; done`,
];
/** Serves, after it has said so; ends at once for the user who is to see that. */
const server =
  'echo hello of {username}; test {username} = fails && exit 3; exec node -e "require(\'http\').createServer((q,a)=>a.end()).listen(process.env.HUB_SERVICE_URL.split(/[:\\/]+/)[2])"';

beforeAll(async () => {
  folder = await createHubFolder({
    Hub: {
      instance_name: 'hub-a',
      allow_named_servers: true,
      services: [
        { name: 'ticker', command: ticker('ticker'), cwd: '.' },
        { name: 'ada', command: ticker('ada'), cwd: '.' },
        { name: 'elsewhere', url: 'http://127.0.0.1:9' },
      ],
    },
    Spawner: { cmd: ['sh', '-c', server] },
  });
  hub = await folder.start();
  for (const path of ['users/ada', 'users/fails', 'users/ada/server', 'users/ada/servers/gpu']) {
    expect((await api(path)).ok).toBe(true);
  }
  await api('users/fails/server');
  await until(async () => (await logs('ticker')).stdout === 'ticker one\nticker two\n', 'it wrote');
});
afterAll(() => folder[Symbol.asyncDispose]());

function api(path: string) {
  const headers = { authorization: 'token admin-service-token' };
  return fetch(`${folder.apiUrl}/${path}`, { method: 'POST', headers });
}

const logs = (...args: readonly string[]) => folder.command(['logs', ...args]);

/** `hub logs -f` as a process of its own. */
function follow(name: string) {
  const child = spawn(
    process.execPath,
    [programFile('main'), 'logs', name, '-f', '--config', folder.configFile],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (output.stdout += chunk));
  child.stderr.on('data', (chunk) => (output.stderr += chunk));
  return { child, output };
}

test('shows the last lines of services and servers', async () => {
  expect(await logs('ticker', '--lines', '1')).toEqual({
    code: 0,
    stdout: 'ticker two\n',
    stderr: '',
  });
  expect((await logs('ada/gpu')).stdout).toContain('hello of ada\n');
  expect((await logs('ada', '--server')).stdout).toContain('hello of ada\n');
  expect((await logs('ada', '--service')).stdout).toBe('ada one\nada two\n');
});

test('leaves out what is older than asked for', async () => {
  expect((await logs('ticker', '--since', '1d')).stdout).toBe('ticker one\nticker two\n');
  expect((await logs('ada/gpu', '--since', '1d')).stdout).toContain('hello of ada\n');
  for (const name of ['ticker', 'ada/gpu']) {
    await until(async () => (await logs(name, '--since', '1')).stdout === '', 'it is older');
  }
  expect((await logs('ticker', '--since', '1d', '--lines', '1')).stdout).toBe('ticker two\n');
  const { code, stderr } = await logs('ticker', '--since', 'yesterday');
  expect([code, stderr]).toEqual([1, expect.stringContaining('one with m, h, d or w')]);
});

test('says what is wrong with a name, and what to do', async () => {
  const reported = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await logs(...args);
    expect([code, stdout]).toEqual([1, '']);
    return stderr;
  };
  expect(await reported('ada')).toBe(
    'There is both a service and a server "ada".\nhub logs ada --service, or hub logs ada --server\n',
  );
  expect(await reported('tikcer')).toBe(
    'There is no service, user or server "tikcer".\nDid you mean ticker?\n',
  );
  expect(await reported('ada/cpu')).toContain('The servers of ada: ada, ada/gpu');
  expect(await reported('elsewhere')).toContain('is external');
  expect(await reported('ticker', '--lines', '1e3')).toContain('a number from 0 to 1000');
  const failed = await logs('fails');
  expect(failed).toMatchObject({ code: 1, stdout: 'hello of fails\n' });
  expect(failed.stderr).toMatch(/It failed at [\d-]+ [\d:]+ UTC: .*\n.* does not run\.\n$/);
});

test('follows over a restart of the hub, until it is interrupted', async () => {
  const { child, output } = follow('ticker');
  await until(() => output.stdout === 'ticker one\nticker two\n', 'the lines before are shown');
  await writeFile(join(folder.directory, 'ticker.0'), '');
  await until(() => output.stdout.endsWith('ticker go 0\n'), 'a new line is shown');

  hub.signal('SIGINT');
  await hub.exited;
  await until(() => output.stderr.includes('Waiting for it …'), 'it says that nothing answers');
  const during = await logs('ticker');
  expect(during).toMatchObject({ code: 1, stdout: '' });
  expect(during.stderr).toBe('No hub runs on this database.\nStart one with: hub start\n');
  hub = await folder.start();
  await until(() => output.stderr.includes('The hub has been restarted'), 'it says so');
  await until(() => output.stdout.split('ticker one\n').length > 2, 'it goes on');
  expect(output.stderr.match(/Waiting/g)).toHaveLength(1);

  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('ends with the reader of its output', async () => {
  const { child, output } = follow('ticker');
  await until(() => output.stdout.includes('ticker two\n'), 'the lines before are shown');
  child.stdout.destroy();
  let count = 1;
  await until(async () => {
    await writeFile(join(folder.directory, `ticker.${count}`), '');
    count += 1;
    return child.exitCode !== null;
  }, 'it has ended');
  expect(child.exitCode).toBe(0);
});

test('is refused by a hub with another key', async () => {
  const config = join(folder.directory, 'other.config.json');
  const { default: own } = await import(folder.configFile, { with: { type: 'json' } });
  own.Hub.cookie_secret = 'abababababababab0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';
  await writeFile(config, JSON.stringify(own));
  const { code, stderr } = await logs('ticker', '--config', config);
  expect(code).toBe(1);
  expect(stderr).toContain('cookie_secret');
});
