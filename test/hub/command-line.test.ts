import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
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
