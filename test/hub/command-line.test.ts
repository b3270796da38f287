import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { programFile } from '../support/program-file.ts';
import { runCommand } from '../support/run-command.ts';
import { createTestHub, submitLogin, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
const password = 'four words in a row';

beforeAll(async () => {
  hub = await createTestHub({ Hub: { authenticator_class: 'password' } });
});

afterAll(async () => hub[Symbol.asyncDispose]());

/** Runs `hub …` on the configuration and the database of the running hub. */
async function run(args: readonly string[], input = '') {
  const { exitCode, ...output } = await runCommand(hub.directory, args, { piped: input });
  return { code: exitCode, ...output };
}

/** Runs `hub …` as a process of its own, as an operator does. */
async function runProcess(args: readonly string[], input = '') {
  const config = join(hub.directory, 'hub.config.json');
  const child = spawn(process.execPath, [programFile('main'), ...args, '--config', config], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(input);
  const [stdout, [code]] = await Promise.all([
    text(child.stdout),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout };
}

async function logIn(userName: string, withPassword: string) {
  const browser = new FakeBrowser();
  const { status } = await submitLogin(browser, hub.url, userName, withPassword);
  return { browser, isLoggedIn: status === 302 || status === 303 };
}

test('a user added beside a running hub can log in at once', async () => {
  const added = await runProcess(['user', 'add', 'ada', '--password-stdin'], `${password}\n`);
  expect(added).toMatchObject({ code: 0, stdout: 'Created the user ada.\n' });
  expect((await logIn('ada', password)).isLoggedIn).toBe(true);
});

test('a token made beside a running hub is good at once, also where it was refused before', async () => {
  await run(['user', 'add', 'tom', '--password-stdin'], `${password}\n`);
  const { code, stdout } = await run(['token', 'tom', '--note', 'report']);
  expect(code).toBe(0);
  const answer = await hub.api('/user', stdout.trim());
  expect(await answer.json()).toMatchObject({ name: 'tom' });
});

test('the list shows who was made in the running hub', async () => {
  await hub.api('/users/made-by-api', 'admin-service-token', { method: 'POST' });
  const { code, stdout } = await run(['user', 'list']);
  expect(code).toBe(0);
  expect(stdout).toContain('made-by-api');
  const asJson = await run(['user', 'list', '--json']);
  expect(JSON.parse(asJson.stdout)).toContainEqual(
    expect.objectContaining({ name: 'made-by-api' }),
  );
});

test('a new password ends every login in the running hub without a restart, and the old one is refused', async () => {
  await run(['user', 'add', 'pat', '--password-stdin'], `${password}\n`);
  const { browser } = await logIn('pat', password);
  expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
  const changed = await run(
    ['user', 'passwd', 'pat', '--password-stdin'],
    'another four words now\n',
  );
  expect(changed.code).toBe(0);
  await until(
    async () => (await browser.request(`${hub.url}hub/home`)).status === 302,
    'the login has ended',
  );
  expect((await logIn('pat', password)).isLoggedIn).toBe(false);
  expect((await logIn('pat', 'another four words now')).isLoggedIn).toBe(true);
});

test('a deleted user is gone from the running hub without a restart: logins, tokens and all', async () => {
  await run(['user', 'add', 'eve', '--password-stdin'], `${password}\n`);
  const { browser } = await logIn('eve', password);
  const token = (await run(['token', 'eve'])).stdout.trim();
  expect((await hub.api('/user', token)).status).toBe(200);
  expect((await run(['user', 'delete', 'eve', '--yes'])).code).toBe(0);
  await until(async () => (await hub.api('/user', token)).status === 403, 'the token is gone');
  await until(
    async () => (await browser.request(`${hub.url}hub/home`)).status === 302,
    'the login is gone',
  );
  expect((await hub.api('/users/eve', 'admin-service-token')).status).toBe(404);
});

test('what cannot be done says why and exits with 1', async () => {
  const unknown = await run(['token', 'nobody-of-this-name']);
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('There is no user nobody-of-this-name.');
  const short = await run(['user', 'add', 'short', '--password-stdin'], 'abc\n');
  expect(short.code).toBe(1);
  expect(short.stderr).not.toContain('abc\n');
  expect((await run(['user', 'delete', 'nobody-of-this-name', '--yes'])).code).toBe(1);
});

describe('a remote hub', () => {
  /** Where nothing but the URL tells which hub is meant. */
  const folder = mkdtempSync(join(tmpdir(), 'hub-remote-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const env = { XDG_CONFIG_HOME: join(folder, 'config') };
  const file = join(env.XDG_CONFIG_HOME, 'hub', 'logins.json');
  const at = (args: readonly string[]) => runCommand(folder, args, { env });

  async function logInAs(name: string, command: readonly string[]) {
    const { browser } = await logIn(name, password);
    return runCommand(folder, command, {
      env,
      async pause(shown) {
        const [url = ''] = /https?:\S+user_code=\S+/.exec(shown) ?? [];
        const page = await browser.request(url);
        expect(page.body).toMatch(/Allow Command line\?.*127\.0\.0\.1/su);
        await submitTo(browser, page, '/hub/device', { decision: 'allow' });
      },
    });
  }

  test('is commanded with what the user may do there, until either side ends it', async () => {
    await run(['user', 'add', 'root', '--admin', '--password-stdin'], `${password}\n`);
    await run(['user', 'add', 'eve', '--password-stdin'], `${password}\n`);
    const url = ['--url', hub.url];
    expect(await at([...url, 'user', 'list'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`hub login ${hub.url}`),
    });
    expect((await logInAs('root', ['login', hub.url])).stdout).toContain('Logged in.');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await at([...url, 'user', 'list'])).stdout).toMatch(/^eve\b/mu);
    expect((await at(['user', 'suspend', 'eve', ...url])).stdout).toBe('eve is suspended.\n');
    await at([...url, 'user', 'unsuspend', 'eve']);
    expect((await at([...url, 'user', 'suspend', 'nobody/x'])).stderr).toContain(
      'There is no user',
    );
    const { stdout: token } = await at([...url, 'token', '--device']);
    expect(await (await hub.api('/user', token.trim())).json()).toMatchObject({ name: 'root' });
    expect((await at(['logout', hub.url])).stdout).toBe('Logged out.\n');
    expect((await hub.api('/user', token.trim())).status).toBe(403);
    expect(readFileSync(file, 'utf8')).not.toContain(hub.url);

    const { stdout } = await logInAs('eve', [...url, 'token', '--device']);
    expect(await (await hub.api('/user', stdout.trim())).json()).toMatchObject({ name: 'eve' });
    expect((await at([...url, 'user', 'list'])).exitCode).toBe(1);
    expect((await at([...url, 'user', 'delete', '--yes', 'root'])).exitCode).toBe(1);
    await hub.api('/users/eve/sessions', 'admin-service-token', { method: 'DELETE' });
    expect((await at([...url, 'user', 'list'])).stderr).toContain(`hub login ${hub.url}`);
  });

  test.each([
    [['--url', 'ftp://hub.example', 'user', 'list'], 'not the URL of a hub'],
    [['login', 'https://name@hub.example'], 'not the URL of a hub'],
    [['login', 'http://127.0.0.1:1'], 'No hub answers at'],
    [['--url', 'http://127.0.0.1:1', 'start'], 'takes no --url'],
    [['--url', 'http://127.0.0.1:1', 'backup', 'x'], 'takes no --url'],
  ])('%j is refused', async (args, reason) => {
    expect(await at(args)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(reason) });
  });
});
