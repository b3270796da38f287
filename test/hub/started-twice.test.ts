import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder, type HubProcess } from '../support/hub-process.ts';
import { adminToken, fixtureApp, isAlive, type ServerModel } from '../support/server-hub.ts';
import { managedService } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const leftovers: number[] = [];
afterEach(() => {
  for (const pid of leftovers.splice(0)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
});

const path = '/users/alice/server';

async function api<Model>(folder: HubFolder, path: string, method = 'GET'): Promise<Model> {
  const answer = await fetch(folder.apiUrl + path, {
    method,
    headers: { authorization: `token ${adminToken}` },
  });
  return (
    answer.headers.get('content-type')?.startsWith('application/json')
      ? await answer.json()
      : undefined
  ) as Model;
}

async function untilServiceReady(folder: HubFolder): Promise<Record<string, unknown>> {
  let service: Record<string, unknown> = {};
  await until(async () => {
    service = await api(folder, '/services/app');
    return service['ready'] === true;
  }, 'the service is ready');
  return service;
}

async function untilServerReady(folder: HubFolder): Promise<number> {
  let server: ServerModel | undefined;
  await until(async () => {
    const user = await api<{ servers: Record<string, ServerModel> }>(folder, '/users/alice');
    server = user.servers[''];
    return server?.ready === true;
  }, 'the server is ready');
  const pid = Number(server?.state?.['pid']);
  leftovers.push(pid);
  return pid;
}

/** Writes a second configuration beside that of the folder, which differs from it as told. */
async function writeBeside(folder: HubFolder, Hub: Record<string, unknown>): Promise<string> {
  const file = join(folder.directory, 'staging.json');
  const config = {
    Hub: {
      bind_url: `http://127.0.0.1:${await freePort()}/`,
      hub_bind_url: `http://127.0.0.1:${await freePort()}`,
      authenticator_class: 'dummy',
      services: [await managedService('app', 'fixtures/apps/prints-environment.cjs')],
      ...Hub,
    },
    Authenticator: { allow_all: true },
    DummyAuthenticator: { password: 'test' },
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

test('a hub that is started again by mistake refuses, and harms nothing of the first', async () => {
  await using folder = await createHubFolder({
    // What a hub that ends would stop.
    Hub: {
      cleanup_servers: true,
      services: [await managedService('app', 'fixtures/apps/prints-environment.cjs')],
    },
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
  });
  await using hub = await folder.start();
  const service = await untilServiceReady(folder);
  await api(folder, '/users/alice', 'POST');
  await api(folder, path, 'POST');
  const serverPid = await untilServerReady(folder);
  // One that only begins to start is in the greatest danger.
  await api(folder, '/users/bob', 'POST');
  await api(folder, '/users/bob/server', 'POST');

  const second = await folder.run(['start']);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(
    `A hub runs with this configuration already (process ${hub.pid}).`,
  );
  expect(second.stdout).toBe('');

  expect(await untilServerReady(folder)).toBe(serverPid);
  expect(isAlive(serverPid)).toBe(true);
  const { pid, restarts } = await untilServiceReady(folder);
  expect({ pid, restarts }).toEqual({ pid: service['pid'], restarts: 0 });
  await until(async () => {
    const bob = await api<{ servers: Record<string, ServerModel> }>(folder, '/users/bob');
    return bob.servers['']?.ready === true;
  }, 'the server that was starting is ready');
  expect(hub.logged(/ended|failed/)).toEqual([]);

  expect(await folder.command(['reload'])).toMatchObject({ code: 0 });
  await until(
    () => hub.logged(/new configuration applied/).length > 0,
    'the first hub has reloaded',
  );
});

test('a hub that was killed does not keep the next one from starting', async () => {
  await using folder = await createHubFolder();
  const killed = await folder.start();
  killed.signal('SIGKILL');
  await killed.exited;
  await using hub = await folder.start();
  expect(await folder.command(['reload'])).toMatchObject({
    stdout: `The hub (process ${hub.pid}) has reloaded.\nNothing has changed.\n`,
  });
});

describe('two configurations in one folder', () => {
  let folder: HubFolder;
  let hub: HubProcess;
  let service: Record<string, unknown>;
  beforeAll(async () => {
    folder = await createHubFolder({
      Hub: { services: [await managedService('app', 'fixtures/apps/prints-environment.cjs')] },
    });
    hub = await folder.start();
    service = await untilServiceReady(folder);
  });
  afterAll(() => folder[Symbol.asyncDispose]());

  test.each([
    ['an SQLite database', { log_dir: 'other-logs' }, 'uses the database', 'Hub.database_url'],
    ['a folder for output', { database_url: 'sqlite:other.sqlite' }, 'writes to', 'Hub.log_dir'],
  ])('cannot share %s', async (_, Hub, reason, setting) => {
    const file = await writeBeside(folder, Hub);
    const second = await folder.run(['start', '--config', file]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`Another hub (process ${hub.pid}) ${reason}`);
    expect(second.stderr).toContain(`a ${setting} of its own`);
  });

  test('leave the services of each other alone', async () => {
    const file = await writeBeside(folder, {
      database_url: 'sqlite:other.sqlite',
      log_dir: 'other-logs',
    });
    await using staging = await folder.start(file);
    await until(() => staging.logged(/^service is ready$/).length > 0, 'its service is ready too');
    staging.signal('SIGTERM');
    expect(await staging.exited).toBe(0);
    const { pid, restarts } = await untilServiceReady(folder);
    expect({ pid, restarts }).toEqual({ pid: service['pid'], restarts: 0 });
    expect(hub.logged(/service ended/)).toEqual([]);
  });
});
