import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import {
  managedService,
  printsEnvironment,
  projectDirectory,
  serviceModel,
  untilState,
} from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const program = (name: string, ...args: string[]) => [
  process.execPath,
  join(projectDirectory, 'fixtures/apps', name),
  ...args,
];

/** Gone, or ended and only not yet collected by its parent. */
async function isAlive(pid: number): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return line !== undefined && !/^\d+ \(.*\) [ZX]/s.test(line);
}

async function isHealthy(of: Pick<TestHub, 'url'>): Promise<boolean> {
  return (await fetch(`${of.url}hub/health`)).status === 200;
}

describe('a service', () => {
  let hub: TestHub;

  beforeAll(async () => {
    hub = await createTestHub({
      Hub: {
        services: [
          await printsEnvironment('good'),
          await printsEnvironment('does-not-exist', { command: ['/nowhere/program'] }),
          await printsEnvironment('exits-at-once', { command: program('exit-at-once.ts', '3') }),
          await printsEnvironment('never-listens', {
            command: program('never-listens.ts'),
            timeout: 1,
          }),
          { name: 'floods', command: program('floods-output.ts', '60') },
          { name: 'ignores-sigterm', command: program('ignores-sigterm.ts'), stop_timeout: 1 },
          { name: 'forks', command: program('leaves-children.ts') },
        ],
      },
    });
    await untilState(hub, 'good', 'ready');
  });

  afterAll(async () => hub[Symbol.asyncDispose]());

  async function tailOf(name: string): Promise<string[]> {
    const answer = await hub.api(`/services/${name}/output`, 'admin-service-token');
    return ((await answer.json()) as { lines: string[] }).lines;
  }

  test('whose command does not exist is seen to, with the reason, and the hub goes on', async () => {
    await untilState(hub, 'does-not-exist', 'crash_looping');
    const { last_error } = await serviceModel(hub, 'does-not-exist');
    expect(last_error).toBe('command not found: /nowhere/program');
    const page = await new FakeBrowser().request(`${hub.url}services/does-not-exist/`);
    expect(page.status).toBe(503);
    expect(await isHealthy(hub)).toBe(true);
  });

  test('that exits at once is crash_looping, with exit code and output', async () => {
    await untilState(hub, 'exits-at-once', 'crash_looping');
    const model = await serviceModel(hub, 'exits-at-once');
    expect(model['last_error']).toMatch(/exited with code 3/);
    expect((await tailOf('exits-at-once')).join('\n')).toContain('something is missing');
    expect((await fetch(`${hub.url}services/exits-at-once/`)).status).toBe(503);
    expect(await isHealthy(hub)).toBe(true);
  });

  test('that never listens is unhealthy, has no route, and goes on running', async () => {
    await until(
      async () => (await serviceModel(hub, 'never-listens'))['last_error'] !== null,
      'the service is found not to listen',
    );
    const model = await serviceModel(hub, 'never-listens');
    expect(model['ready']).toBe(false);
    expect((await fetch(`${hub.url}services/never-listens/`)).status).toBe(503);
  });

  test('that floods its output fills neither memory, log nor disk', async () => {
    await until(
      async () => (await tailOf('floods')).some((line) => line.includes('flood is over')),
      'the flood is over',
    );
    const tail = await tailOf('floods');
    expect(tail.length).toBeLessThanOrEqual(1_000);
    const folder = join(hub.directory, 'logs');
    const files = (await readdir(folder)).filter((name) => name.startsWith('service-floods'));
    const sizes = await Promise.all(
      files.map(async (name) => (await stat(join(folder, name))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(40 * 1024 * 1024);
    expect(hub.logLines.length).toBeLessThan(100_000);
    expect(await isHealthy(hub)).toBe(true);
  });

  test('that forks into the background is ended with what it left, and that is said', async () => {
    await until(
      async () => (await serviceModel(hub, 'forks'))['last_exit'] !== null,
      'it ended once',
    );
    const { last_exit, last_error } = await serviceModel(hub, 'forks');
    expect(last_exit).toMatchObject({ leftBehind: 2 });
    expect(last_error).toMatch(/must stay in the foreground/);
    const [line = '{}'] = (await tailOf('forks')).filter((each) => each.startsWith('{'));
    const { sameGroup, daemon } = JSON.parse(line) as { sameGroup: number; daemon: number };
    expect([await isAlive(sameGroup), await isAlive(daemon)]).toEqual([false, false]);
  });

  test('beside all of these serves as if they were not there', async () => {
    expect((await fetch(`${hub.url}services/good/`)).status).toBe(200);
  });

  test('that ignores SIGTERM is killed when the hub stops', async () => {
    await using own = await createTestHub({
      Hub: {
        services: [{ name: 'stubborn', command: program('ignores-sigterm.ts'), stop_timeout: 1 }],
      },
    });
    await untilState(own, 'stubborn', 'ready');
    const pid = Number((await serviceModel(own, 'stubborn'))['pid']);
    await own[Symbol.asyncDispose]();
    expect(await isAlive(pid)).toBe(false);
  });
});

describe('a database', () => {
  test('that another process has locked makes writing 503 with Retry-After, and loses nothing', async () => {
    await using hub = await createTestHub();
    const browser = await hub.logIn('alice');
    using other = new DatabaseSync(join(hub.directory, 'hub.sqlite'));
    await until(async () => {
      try {
        other.exec('begin immediate');
        return true;
      } catch {
        return false;
      }
    }, 'the database is locked by the other process');
    const create = () => hub.api('/users/bob', 'admin-service-token', { method: 'POST' });
    const refused = await create();
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(((await refused.json()) as { message: string }).message).toMatch(/locked/);
    expect(await isHealthy(hub)).toBe(true);
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
    other.exec('commit');
    expect((await create()).status).toBe(201);
    const users = (await (await hub.api('/users', 'admin-service-token')).json()) as unknown[];
    expect(users).toHaveLength(2);
  });

  test('whose file is deleted under the hub makes writing 503, and reading goes on', async () => {
    await using hub = await createTestHub();
    const browser = await hub.logIn('alice');
    await rm(join(hub.directory, 'hub.sqlite'));
    let number = 0;
    let refused: Response | undefined;
    await until(async () => {
      number += 1;
      refused = await hub.api(`/users/user-${number}`, 'admin-service-token', { method: 'POST' });
      return refused.status !== 201;
    }, 'writing is refused');
    expect(refused?.status).toBe(503);
    expect(await refused?.json()).toMatchObject({
      code: 'storage_unavailable',
      message: 'The file of the database was deleted.',
    });
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
    expect(await isHealthy(hub)).toBe(true);
  });

  test('whose file may not grow any more makes writing 503, reading goes on, what was answered stays', async () => {
    await using folder = await createHubFolder();
    const blocksOf512 = 2_800;
    const child = spawn(
      '/bin/sh',
      [
        '-c',
        `ulimit -f ${blocksOf512}; exec "$@"`,
        'sh',
        process.execPath,
        programFile('main'),
        'start',
        '--config',
        folder.configFile,
      ],
      { cwd: folder.directory, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    child.stdout.resume();
    const exited = once(child, 'exit');
    try {
      await until(async () => isHealthy(folder).catch(() => false), `the hub runs: ${output}`);
      const created: string[] = [];
      let refused: Response | undefined;
      for (let number = 0; refused === undefined && number < 5_000; number += 1) {
        const name = `user-${number}-${'x'.repeat(200)}`;
        const answer = await fetch(`${folder.apiUrl}/users/${name}`, {
          method: 'POST',
          headers: { authorization: 'token admin-service-token' },
        });
        if (answer.status === 201) created.push(name);
        else refused = answer;
      }
      expect(refused?.status).toBe(503);
      expect(await refused?.json()).toMatchObject({ code: 'storage_unavailable' });
      expect(await isHealthy(folder)).toBe(true);
      const [last = ''] = created.slice(-1);
      const read = await fetch(`${folder.apiUrl}/users/${last}`, {
        headers: { authorization: 'token admin-service-token' },
      });
      expect(read.status).toBe(200);
    } finally {
      child.kill('SIGTERM');
      await exited;
    }
    const roomy = await folder.start();
    expect(roomy.logged(/ready/).length).toBeGreaterThan(0);
    const answer = await fetch(`${folder.apiUrl}/users/user-0-${'x'.repeat(200)}`, {
      headers: { authorization: 'token admin-service-token' },
    });
    expect(answer.status).toBe(200);
  });
});

describe('secrets', () => {
  test('of a whole story of login, OAuth and API stand in no line of the log', async () => {
    const password = 'Quite-A-Secret-Password-91';
    const cookieSecret = 'b81f0c3a9d27e6540f1a8c7bd93e2064c5aa7f18e0b24d9637fc1285ad60e94b';
    const secretOfService = 'secret-of-the-telling-service';
    const tells = `console.log('my token is ' + process.env.HUB_API_TOKEN); setInterval(() => {}, 60_000)`;
    await using hub = await createTestHub({
      DummyAuthenticator: { password },
      Hub: {
        cookie_secret: cookieSecret,
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
        services: [
          { name: 'tells', command: [process.execPath, '-e', tells], api_token: secretOfService },
          {
            name: 'client',
            api_token: 'secret-of-the-client-93',
            oauth_no_confirm: true,
          },
          await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
            access: 'gateway',
            oauth_no_confirm: false,
          }),
        ],
      },
    });
    await untilState(hub, 'guarded', 'ready');
    await untilState(hub, 'tells', 'ready');
    const secrets = new Set([
      password,
      cookieSecret,
      secretOfService,
      'secret-of-the-client-93',
      'admin-service-token',
    ]);

    const browser = await hub.logIn('alice', password);
    await expect(hub.logIn('bob', `${password}-wrong`)).rejects.toThrow();
    const query = new URLSearchParams({
      client_id: 'service-client',
      redirect_uri: '/services/client/oauth_callback',
      response_type: 'code',
      state: 'a-state-that-is-secret',
    });
    secrets.add('a-state-that-is-secret');
    const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
    const location = new URL(answer.headers.location ?? '', hub.url);
    const code = location.searchParams.get('code') ?? '';
    secrets.add(code);
    await browser.request(location.href);
    const exchange = await fetch(`${hub.apiUrl}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: 'service-client',
        client_secret: 'secret-of-the-client-93',
        redirect_uri: '/services/client/oauth_callback',
        code,
      }),
    });
    const { access_token } = (await exchange.json()) as { access_token: string };
    secrets.add(access_token);
    await hub.api('/user', access_token);
    for (const url of [`${hub.apiUrl}/user`, `${hub.url}hub/home`, `${hub.url}services/guarded/`]) {
      await fetch(`${url}?token=${access_token}`);
      await fetch(`${url}?a=1&token=${encodeURIComponent('wrong-but-secret-token')}`);
      await fetch(`${url}?%74oken=${access_token}`);
    }
    secrets.add('wrong-but-secret-token');
    const made = await hub.api('/users/alice/tokens', 'admin-service-token', {
      method: 'POST',
      body: '{}',
    });
    const { token } = (await made.json()) as { token: string };
    secrets.add(token);
    await hub.api('/users', token);
    await fetch(`${hub.apiUrl}/oauth2/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('service-client:secret-of-the-client-93')}` },
      body: new URLSearchParams({ token }),
    });
    const consent = await browser.open(`${hub.url}services/guarded/`);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(consent.body)?.[1] ?? '';
    secrets.add(csrf);
    for (const name of browser.cookieNames()) {
      if (name !== 'hub-session-id') secrets.add(browser.cookie(name)?.value ?? '');
    }
    await browser.request(`${hub.url}hub/logout`);

    expect([...secrets].filter((secret) => secret.length < 8)).toEqual([]);
    const log = JSON.stringify(hub.logLines);
    expect(log).toContain('my token is');
    expect([...secrets].filter((secret) => log.includes(secret))).toEqual([]);
    // The service writes this file itself, so it is as it is; nobody else may read it.
    const file = join(hub.directory, 'logs/service-tells.log');
    expect((await stat(file)).mode & 0o077).toBe(0);
  });
});
