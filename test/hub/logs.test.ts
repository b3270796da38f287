import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { visit } from 'jsonc-parser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import {
  createHubFolder,
  type HubFolder,
  type HubProcess,
  startHubProcess,
} from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import { pathOf, requires } from '../support/requires.ts';
import { fixtureApp } from '../support/server-hub.ts';
import { managedService, usersOpenServices } from '../support/services.ts';
import { submitLogin, until } from '../support/test-hub.ts';

function api(folder: HubFolder, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(folder.apiUrl + path, {
    ...init,
    headers: { authorization: 'token admin-service-token' },
  });
}

/** Names that stand more than once in an object of the text. */
function repeatedNames(json: string): string[] {
  const seen: Set<string>[] = [];
  const repeated: string[] = [];
  visit(json, {
    onObjectBegin: () => void seen.push(new Set()),
    onObjectEnd: () => void seen.pop(),
    onObjectProperty(name) {
      const names = seen.at(-1);
      if (names?.has(name) === true) repeated.push(name);
      names?.add(name);
    },
  });
  return repeated;
}

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line !== '');
}

test('repeated names are found where they are', () => {
  expect(repeatedNames('{"a":{"b":1,"c":{"b":2}},"b":{"b":3}}')).toEqual([]);
  expect(repeatedNames('{"a":{"b":1,"b":2},"a":1}')).toEqual(['b', 'a']);
});

describe('the log of a busy run', () => {
  test('is JSON with each name once in a line, level names and ISO times', async () => {
    await using folder = await createHubFolder({
      Hub: {
        cleanup_servers: true,
        log_level: 'debug',
        load_roles: usersOpenServices,
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
          { name: 'brief', command: fixtureApp('exit-at-once', '3') },
          { name: 'talks', command: ['sh', '-c', 'echo hello; sleep 600'] },
          { name: 'away', url: 'http://127.0.0.1:9' },
        ],
      },
      Spawner: { cmd: fixtureApp('web-server') },
    });
    await using hub = await folder.start();
    const browser = new FakeBrowser();
    await submitLogin(new FakeBrowser(), folder.url, 'alice', 'wrong');
    await submitLogin(browser, folder.url, 'alice', 'test');
    await browser.open(`${folder.url}services/app/`);
    await browser.open(`${folder.url}services/away/`);
    await api(folder, '/users/bob', { method: 'POST' });
    await api(folder, '/users/bob/server', { method: 'POST' });
    await api(folder, '/users/bob/server', { method: 'DELETE' });
    await folder.configure({ Hub: { load_roles: [{ name: 'user', scopes: ['no-such-scope'] }] } });
    hub.signal('SIGHUP');
    await until(() => hub.stderr().includes('not reloaded'), 'the mistake has been noticed');
    await folder.configure({ Spawner: { cmd: ['false'] } });
    hub.signal('SIGHUP');
    await until(
      () => ['hello', 'service ended', 'not reloaded'].every((part) => hub.stderr().includes(part)),
      'it has all happened',
    );
    hub.signal('SIGTERM');
    await hub.exited;

    const lines = linesOf(hub.stderr());
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.flatMap((line) => repeatedNames(line).map((name) => `${name}: ${line}`))).toEqual(
      [],
    );
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({
        level: expect.stringMatching(/^(debug|info|warn|error)$/),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        pid: hub.pid,
      });
    }
  });

  describe('with numbers', () => {
    let folder: HubFolder;
    let hub: HubProcess;
    beforeAll(async () => {
      folder = await createHubFolder({
        Hub: { log_level_format: 'number', log_time_format: 'epoch_ms' },
      });
      hub = await folder.start();
    });
    afterAll(() => folder[Symbol.asyncDispose]());

    test('has them for levels and times where a collector wants them', () => {
      const [ready] = hub.logged(/hub ready/);
      expect(ready).toMatchObject({ level: 30, time: expect.any(Number) });
    });

    test('holds no token, wherever in an address it was', async () => {
      const token = `hub_${'s3cret-_T0ken'.repeat(4).slice(0, 43)}`;
      await api(folder, `/users/${token}`);
      await api(folder, `/users/ada/tokens/${token}?token=${token}&next=%2Fx%2F${token}`);
      await until(() => hub.logged(/^request$/).length >= 2, 'both requests are logged');
      expect(hub.stderr()).not.toContain(token.slice(4));
      expect(hub.logged(/^request$/)[0]).toMatchObject({ url: '/hub/api/users/[token]' });
    });
  });

  test('is JSON on either stream where it must be, also at the first start and at a failure', async () => {
    await using folder = await createHubFolder({
      Hub: { authenticator_class: 'password', log_format: 'json' },
      Authenticator: {},
    });
    const warns = join(folder.directory, 'warns.mjs');
    await writeFile(
      warns,
      `import { isMainThread } from 'node:worker_threads';
      if (isMainThread) {
        process.emitWarning('before the log');
        process.on('SIGUSR2', () => process.emitWarning('from a package'));
      }`,
    );
    await using hub = await startHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
      env: { NODE_OPTIONS: `--import ${warns}` },
    });
    hub.signal('SIGUSR2');
    await until(() => hub.stderr().includes('from a package'), 'the warning is there');
    expect(hub.logged(/^warning of the runtime$/)).toHaveLength(2);
    expect(linesOf(hub.stdout()).map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: 'info',
        setUpUrl: expect.stringMatching(/\/hub\/set-up\?secret=[\w-]{43}$/),
        msg: `The hub is ready at ${folder.url}`,
      }),
    ]);
    const second = await folder.run(['start']);
    expect(second.code).toBe(1);
    for (const line of [...linesOf(hub.stderr()), ...linesOf(second.stderr + second.stdout)]) {
      expect(JSON.parse(line)).toHaveProperty('level');
    }
    expect(second.stderr).toContain('ended by a failure');
  });

  test('is text where it should be, one line an event', async () => {
    await using folder = await createHubFolder({
      Hub: {
        log_format: 'text',
        services: [{ name: 'talks', command: ['sh', '-c', 'echo hello; sleep 600'] }],
      },
    });
    await using hub = await folder.start();
    await until(() => hub.stderr().includes('hello'), 'the service has said something');
    expect(hub.stderr()).toMatch(/^\[\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}\] INFO: \[talks\] hello \{/m);
    for (const line of linesOf(hub.stderr())) expect(line).toMatch(/^\[\d{4}-\d\d-\d\dT/);
  });
});

describe('on a terminal', () => {
  test.skipIf(!requires('script'))(
    'each event is one line and the link of the first administrator stands last',
    async () => {
      await using folder = await createHubFolder({
        Hub: {
          authenticator_class: 'password',
          services: [
            { name: 'absent', command: ['no-such-command'] },
            { name: 'talks', command: ['sh', '-c', 'echo hello; sleep 600'] },
          ],
        },
        Authenticator: {},
      });
      const main = programFile('main');
      const command = `exec '${process.execPath}' '${main}' start --config '${folder.configFile}'`;
      const child = spawn(
        pathOf('script'),
        ['--quiet', '--return', '--command', command, '/dev/null'],
        {
          cwd: folder.directory,
          stdio: ['pipe', 'pipe', 'inherit'],
          env: { ...process.env, SHELL: '/bin/sh' },
        },
      );
      let screen = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        screen += chunk;
      });
      await until(() => /set-up\?secret=\S+\s/.test(screen), 'the link is there');
      const shown = screen;
      // Ctrl-C.
      child.stdin.write('\u0003');
      await once(child, 'exit');
      const lines = shown.replaceAll(/\u001b\[\d*m/g, '').split('\r\n');
      const first = lines.findIndex((line) => line.startsWith('The hub is ready at'));
      const events = lines.slice(0, first);
      expect(events.join('\n')).toContain('[talks] service is ready');
      expect(events.join('\n')).toContain('command not found in PATH: no-such-command');
      for (const line of events) expect(line).toMatch(/^\[\d\d:\d\d:\d\d\] (INFO|WARN)/);
      expect(lines.slice(first).join('\n')).toMatch(
        /^The hub is ready at \S+\n[^\n]*\n {2}http\S+\/hub\/set-up\?secret=\S+\n$/,
      );
    },
  );

  test('the link can be had again, and the former one ends', async () => {
    await using folder = await createHubFolder({
      Hub: { authenticator_class: 'password' },
      Authenticator: {},
    });
    await using hub = await folder.start();
    const [printed = ''] = /http:\S+set-up\S+/.exec(hub.stdout()) ?? [];
    const { code, stdout } = await folder.command(['setup-link']);
    expect(code).toBe(0);
    const again = stdout.trim();
    expect(again).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/hub\/set-up\?secret=[\w-]{43}$/);
    const status = async (url: string) => (await new FakeBrowser().request(url)).status;
    expect([await status(printed), await status(again)]).toEqual([403, 200]);

    await folder.command(
      ['user', 'add', 'ada', '--admin', '--password-stdin'],
      'four words in a row\n',
    );
    const refused = await folder.command(['setup-link']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('There is an administrator already.');
  });
});

test('a service in a flood of output fills neither the log of the hub nor its folder', async () => {
  const mebibytes = 150;
  await using folder = await createHubFolder({
    Hub: { services: [{ name: 'flood', command: fixtureApp('floods-output', `${mebibytes}`) }] },
  });
  await using hub = await folder.start();
  const startedAt = performance.now();
  await until(() => hub.stderr().includes('flood is over'), 'the flood is over');
  const seconds = Math.ceil((performance.now() - startedAt) / 1000) + 2;
  const lines = hub.logged(/flood|more lines|output not shown/);
  expect(lines.length).toBeLessThan(seconds * 22);
  expect(hub.logged(/more lines of its output/).length).toBeGreaterThan(0);
  const logs = join(folder.directory, 'logs');
  await until(async () => {
    const sizes = await Promise.all(
      (await readdir(logs)).map(async (name) => (await stat(join(logs, name))).size),
    );
    return sizes.reduce((sum, size) => sum + size, 0) < 90 * 1024 * 1024;
  }, 'the files of the service are small again');
});
