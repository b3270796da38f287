import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { canUsePam, makePamAccount } from '../support/pam-account.ts';
import { pathOf } from '../support/requires.ts';
import { createTestHub, submitLogin, until } from '../support/test-hub.ts';

/** `nodelay`: PAM waits two seconds after a wrong password. */
const unix = `auth required pam_unix.so nodelay
account required pam_unix.so
`;

const hubWith = (PAMAuthenticator: object, Authenticator: object = {}) =>
  createTestHub({
    Hub: { authenticator_class: 'pam', shutdown_timeout: 1 },
    Authenticator: { allow_all: true, ...Authenticator },
    PAMAuthenticator,
  });

const attempt = async (hub: { readonly url: string }, name: string, password: string) =>
  (await submitLogin(new FakeBrowser(), hub.url, name, password)).status;

describe.runIf(canUsePam())('a login with an account of the machine', () => {
  test('takes the right password of a good account, in any case of its name', async () => {
    using account = makePamAccount();
    await using hub = await hubWith({ service: account.service(unix) }, { lockout_attempts: 100 });
    const { name, password } = account;
    await hub.logIn(name.toUpperCase(), password);
    expect((await hub.logIn(name, password)).request).toBeDefined();
    for (const wrong of ['', 'wrong', `${password} `, `${password}\u0000x`, 'x'.repeat(512)])
      expect(await attempt(hub, name, wrong)).toBe(401);
    for (const nobody of ['nosuchuser', '-x', '../root', 'a:b', `${name}\n`, 'root'])
      expect([401, 403]).toContain(await attempt(hub, nobody, 'wrong'));
  });

  test('takes no locked, expired or outdated account', async () => {
    using account = makePamAccount();
    await using hub = await hubWith({ service: account.service(unix) });
    const { name, password } = account;
    account.change('chage', '--expiredate', '0');
    expect(await attempt(hub, name, password)).toBe(403);
    account.change('chage', '--expiredate', '-1');
    account.change('chage', '--lastday', '0');
    expect(await attempt(hub, name, password)).toBe(403);
    account.change('chage', '--lastday', '-1');
    expect(await attempt(hub, name, password)).toBe(302);
    account.change('usermod', '--lock');
    expect(await attempt(hub, name, password)).toBe(401);
    await using lenient = await hubWith({ service: account.service(unix), check_account: false });
    account.change('usermod', '--unlock');
    account.change('chage', '--expiredate', '0');
    expect(await attempt(lenient, name, password)).toBe(302);
  });

  test('gives what groups of the machine have, and counts wrong passwords', async () => {
    using account = makePamAccount();
    const { name, password } = account;
    const service = account.service(unix);
    await using admins = await hubWith({ service, admin_groups: [name] }, { allow_all: false });
    const page = await (await admins.logIn(name, password)).request(`${admins.url}hub/admin`);
    expect(page.status).toBe(200);
    await using others = await hubWith({ service, allowed_groups: ['no-such'] });
    expect(await attempt(others, name, password)).toBe(403);
    await using strict = await hubWith({ service }, { lockout_attempts: 2 });
    const guess = () => attempt(strict, name, 'guess');
    expect([await guess(), await guess(), await attempt(strict, name, password)]).toEqual([
      401, 401, 429,
    ]);
  });

  test('counts a wrong password for which PAM waits longer than it may', async () => {
    using account = makePamAccount();
    const { name, password } = account;
    const service = account.service(`auth optional pam_faildelay.so delay=600000000\n${unix}`);
    await using hub = await hubWith({ service, timeout: 2 }, { lockout_attempts: 2 });
    const guess = () => attempt(hub, name, 'guess');
    expect([await guess(), await guess(), await attempt(hub, name, password)]).toEqual([
      401, 401, 429,
    ]);
  });

  test('is told apart from a service that is missing or broken, which lets nobody in', async () => {
    using account = makePamAccount();
    const { name, password } = account;
    // PAM itself would go on with the service "other", which lets in who has a password.
    await using missing = await hubWith({ service: 'hubtest-none' });
    expect(await attempt(missing, name, password)).toBe(503);
    expect(JSON.stringify(missing.logLines)).toContain('no PAM service');
    const service = account.service('auth required pam_no_such_module.so\n');
    await using broken = await hubWith({ service });
    expect(await attempt(broken, name, password)).toBe(503);
  });

  test('ends a helper that hangs, and shows the password to nobody', async () => {
    using account = makePamAccount();
    const { name } = account;
    const password = 'green giraffes whisper';
    const pipe = join(tmpdir(), name);
    execFileSync('mkfifo', ['-m', '644', pipe]);
    onTestFinished(() => rmSync(pipe));
    const service = account.service(`auth required pam_echo.so file=${pipe}\n${unix}`);
    await using hub = await hubWith({ service, timeout: 3 });
    const answer = attempt(hub, name, password);
    await until(() => findHelper() !== undefined, 'the helper runs');
    const helper = findHelper() ?? '';
    expect(everythingIn(helper, ['cmdline', 'environ'])).not.toContain('giraffes');
    // It may read the hashes of passwords, and that is all.
    const status = everythingIn(helper, ['status']);
    expect(status).toMatch(/^CapBnd:\s0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(status).not.toMatch(/^Uid:\s0/m);
    expect(await answer).toBe(503);
    await until(() => findHelper() === undefined, 'the helper is gone');
    expect(JSON.stringify(hub.logLines)).toContain('did not answer in 3 seconds');
    expect(JSON.stringify(hub.logLines)).not.toContain('giraffes');
  });

  test('ends what a module started, also in a session of its own', async () => {
    using account = makePamAccount();
    const { name, password } = account;
    const script = join(tmpdir(), `${name}.sh`);
    // pam_exec makes a session for each program, and that one makes another, which nobody waits for.
    writeFileSync(script, `#!/bin/sh\nsetsid sleep 86397 ${name} &\nsleep 86397 ${name}\n`);
    chmodSync(script, 0o755);
    onTestFinished(() => rmSync(script));
    const service = account.service(`auth required pam_exec.so ${script}\n${unix}`);
    await using hub = await hubWith({ service, timeout: 5 });
    const answer = attempt(hub, name, password);
    let isOver = false;
    void answer.finally(() => {
      isOver = true;
    });
    // A slow machine may not get so far in that time.
    await until(() => isOver || processesWith(name).length > 1, 'the programs of the module run');
    expect(await answer).toBe(503);
    expect(processesWith(name)).toEqual([]);
  });

  test('lets others in while wrong passwords from one address wait for their answer', async () => {
    using account = makePamAccount();
    const { name, password } = account;
    const service = account.service(`auth optional pam_faildelay.so delay=600000000\n${unix}`);
    await using hub = await hubWith({ service, timeout: 300 }, { concurrent_logins: 1 });
    const guess = attempt(hub, 'nosuchuser', 'wrong').catch(() => 0);
    await until(
      () => JSON.stringify(hub.logLines).includes('PAM refused a login'),
      'the guess was refused',
    );
    expect(await Promise.race([attempt(hub, name, password), guess])).toBe(302);
  });
});

/** The process that asks PAM, of this process. */
function findHelper(): string | undefined {
  return readdirSync('/proc').find((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const [, , parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/\(.*\)/s, '')
        .split(' ')
        .filter(Boolean);
      const isOurs = Number(parent) === process.pid;
      return isOurs && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(pathOf('python3'));
    } catch {
      return false;
    }
  });
}

const processesWith = (word: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });

const everythingIn = (pid: string, files: readonly string[]): string =>
  files.map((file) => readFileSync(`/proc/${pid}/${file}`, 'latin1')).join('\n');
