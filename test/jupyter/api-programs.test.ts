import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { pathOf, requires } from '../support/requires.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

const canRun = requires('python3-tornado', 'python3-requests', 'python3-dateutil');

// A program starts in each step.
/**
 * Programs that send what two programs for JupyterHub send, with the libraries of these: its idle culler and its
 * example `server-api`.
 */
describe.runIf(canRun)('a program for JupyterHub that', () => {
  const cullerToken = 'token-of-the-culler-service';
  let hub: TestHub;

  beforeAll(async () => {
    hub = await createServerHub({
      Hub: {
        allow_named_servers: true,
        // It asks for the version of JupyterHub's interface.
        environment_prefixes: ['HUB', 'JUPYTERHUB'],
        services: [{ name: 'culler', api_token: cullerToken }],
        load_roles: [
          {
            name: 'culler',
            services: ['culler'],
            scopes: [
              'read:hub',
              'list:users',
              'read:users:activity',
              'read:users',
              'read:servers',
              'delete:servers',
              'delete:users',
            ],
          },
        ],
      },
      Spawner: {
        cmd: trivialApp(),
        start_timeout: 300,
        http_timeout: 300,
        slow_stop_timeout: 250,
      },
    });
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  async function run(program: string, token: string, args: readonly string[]): Promise<string[]> {
    const file = join(projectDirectory, 'fixtures', 'jupyter', program);
    const environment = { JUPYTERHUB_API_URL: hub.apiUrl, JUPYTERHUB_API_TOKEN: token };
    const { stdout } = await promisify(execFile)(pathOf('python3-tornado'), [file, ...args], {
      env: environment,
    });
    return stdout.split('\n').filter((line) => line !== '');
  }

  /** What it stopped and deleted, sorted. */
  const cull = async (...flags: string[]) =>
    (await run('cull_once.py', cullerToken, flags)).toSorted();

  const statusOf = async (path: string) => (await hub.api(path, adminToken)).status;

  const startAll = (...names: string[]) =>
    Promise.all(
      names.flatMap((name) => [
        startUntilReady(hub, serverPath(name)),
        startUntilReady(hub, serverPath(name, 'lab')),
      ]),
    );

  test('culls servers and users does so by each of its options', async () => {
    await createUsers(hub, 'ann', 'bob', 'cid', 'root');
    await hub.api('/users/root', adminToken, {
      method: 'PATCH',
      body: JSON.stringify({ admin: true }),
    });
    await startAll('ann', 'bob');
    expect(await cull('--timeout=100000', '--max-age=100000')).toEqual([]);
    const named = ['stopped ann/lab', 'stopped bob/lab'];
    const unnamed = ['stopped ann/', 'stopped bob/'];
    expect(await cull('--timeout=0', '--cull-default-servers=false')).toEqual(named);
    // Stopped, and kept.
    expect(await statusOf(serverPath('ann', 'lab'))).toBe(200);
    expect(await cull('--timeout=0', '--cull-named-servers=false')).toEqual(unnamed);

    await startAll('ann', 'bob');
    const removing = ['--timeout=0', '--remove-named-servers=True', '--api-page-size=1'];
    expect(await cull(...removing, '--concurrency=1')).toEqual([...unnamed, ...named].toSorted());
    for (const name of ['ann', 'bob']) {
      expect(await statusOf(serverPath(name, 'lab'))).toBe(404);
      expect(await statusOf(`/users/${name}`)).toBe(200);
    }

    await startUntilReady(hub, serverPath('ann'));
    let stopped: readonly string[] = [];
    await vi.waitFor(
      async () => {
        stopped = await cull('--timeout=100000', '--max-age=1');
        expect(stopped).not.toEqual([]);
      },
      { timeout: 240_000 },
    );
    expect(stopped).toEqual(['stopped ann/']);

    await startUntilReady(hub, serverPath('bob'));
    const users = ['--timeout=0', '--cull-users=True', '--api-page-size=1'];
    expect(await cull(...users, '--cull-admin-users=False', '--concurrency=0')).toEqual([
      'deleted ann',
      'deleted bob',
      'deleted cid',
      'stopped bob/',
    ]);
    expect(await statusOf('/users/ann')).toBe(404);
    expect(await statusOf('/users/root')).toBe(200);
  });

  test.each(['', 'lab'])(
    'starts, follows, uses and stops a server does so: “%s”',
    async (server) => {
      await createUsers(hub, 'dot').catch(() => {});
      const done = await run('start_and_stop.py', adminToken, [
        hub.url.replace(/\/$/, ''),
        'dot',
        server,
      ]);
      expect(done).toEqual(['used ok', 'stopped']);
    },
  );
});
