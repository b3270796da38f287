import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { requires } from '../support/requires.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { sharePrograms } from '../support/shared-programs.ts';
import type { TestHub } from '../support/test-hub.ts';

async function call(hub: TestHub, token: string, path: string, method: string, body?: unknown) {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const answer = await hub.api(path, token, init);
  const text = await answer.text();
  return { status: answer.status, message: messageOf(text) };
}

function messageOf(text: string): string {
  const { message, hint } = JSON.parse(text || '{}') as { message?: string; hint?: string };
  return [message, hint].join(' ').trim();
}

const change = (hub: TestHub, name: string, body: unknown, token = adminToken) =>
  call(hub, token, `/users/${name}`, 'PATCH', body);

/** Tries to start a user's server; the answer, and what account it runs as if it does. */
async function start(hub: TestHub, name: string) {
  const answer = await startServer(hub, serverPath(name));
  const message = messageOf(await answer.text());
  if (answer.status >= 400) return { status: answer.status, message };
  const { state } = await untilServer(
    hub,
    serverPath(name),
    ({ ready, failure }) => ready || failure !== null,
    `the server of ${name} is ready`,
  );
  if (state?.['pid'] === undefined) return { status: answer.status, message };
  const status = await readFile(`/proc/${state['pid']}/status`, 'utf8');
  return { status: answer.status, userId: Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) };
}

async function stop(hub: TestHub, name: string): Promise<void> {
  await stopServer(hub, serverPath(name));
  await untilServer(hub, serverPath(name), ({ stopped }) => stopped, `${name} stops`);
}

const nobodyId = 65_534;

describe.runIf(requires('root'))('a system account named after the user', () => {
  async function createRootHub(programs: { app(name: string): string[] }, options = {}) {
    const hub = await createServerHub({
      Hub: {
        load_groups: [{ name: 'course', users: ['bob'] }],
        load_roles: [
          {
            name: 'lead',
            scopes: ['admin:users!group=course', 'servers!group=course'],
            services: ['lead'],
          },
        ],
        services: [{ name: 'lead', api_token: 'lead-token' }],
      },
      Spawner: {
        cmd: programs.app('web-server.cjs'),
        system_user: '{username}',
        socket: true,
        ...options,
      },
    });
    await chmod(hub.directory, 0o755);
    return hub;
  }

  test('is not chosen by a new name', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    await using hub = await createRootHub(programs);
    for (const name of ['root', 'nobody']) {
      expect((await change(hub, 'bob', { name }, 'lead-token')).status).toBe(200);
      const started = await start(hub, name);
      expect(started.userId, name).toBeUndefined();
      await change(hub, name, { name: 'bob' });
    }
  });

  test('is never root nor one of the system', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    await using hub = await createRootHub(programs);
    await createUsers(hub, 'root', 'daemon');
    expect(await start(hub, 'root')).toEqual({
      status: 400,
      message: expect.stringMatching(/"root".*administers this machine/),
    });
    expect(await start(hub, 'daemon')).toEqual({
      status: 400,
      message: expect.stringMatching(/"daemon".*UID_MIN.*Spawner\.allowed_system_users/),
    });
  });

  test('may be one of the system where the operator names it, but not root', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    await using hub = await createRootHub(programs, { allowed_system_users: ['daemon', 'root'] });
    await createUsers(hub, 'daemon', 'root');
    expect(await start(hub, 'daemon')).toMatchObject({ userId: 1 });
    expect((await start(hub, 'root')).status).toBe(400);
  });

  test('stays that of a user who is renamed, and is no other user’s', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    await using hub = await createRootHub(programs);
    await createUsers(hub, 'nobody');
    expect(await start(hub, 'nobody')).toMatchObject({ userId: nobodyId });
    await change(hub, 'nobody', { name: 'ned' });
    expect(await start(hub, 'ned')).toMatchObject({ userId: nobodyId });
    await createUsers(hub, 'nobody');
    const refused = await start(hub, 'nobody');
    expect(refused).toEqual({
      status: 409,
      message: expect.stringMatching(/belongs to another user.*hub user account/),
    });
    // Nor by way of an administrator's mistake.
    const given = await change(hub, 'nobody', { system_account: 'nobody' });
    expect(given).toEqual({ status: 409, message: expect.stringContaining('belongs to ned') });
  });

  test('is chosen by administrators only', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    await using hub = await createRootHub(programs);
    const asLead = await change(hub, 'bob', { system_account: 'nobody' }, 'lead-token');
    expect(asLead.status).toBe(403);
    expect((await change(hub, 'bob', { system_account: 'nobody' })).status).toBe(200);
    expect(await start(hub, 'bob')).toMatchObject({ userId: nobodyId });
  });
});

describe('the files of a user', () => {
  const home = async (hub: TestHub, name: string) => {
    const { state } = await getServer(hub, serverPath(name));
    const environment = await readFile(`/proc/${state?.['pid']}/environ`, 'utf8');
    return /(?:^|\0)HOME=([^\0]*)/.exec(environment)?.[1];
  };

  test('are not inherited by a later user of the same name', async () => {
    await using hub = await createServerHub();
    await createUsers(hub, 'ann', 'new');
    await startUntilReady(hub, serverPath('ann'));
    expect((await call(hub, adminToken, '/users/ann', 'DELETE')).status).toBe(204);
    await createUsers(hub, 'ann');
    expect(await start(hub, 'ann')).toEqual({
      status: 409,
      message: expect.stringMatching(/belonged to a deleted user.*hub user account ann /),
    });
    // Nor by way of another name.
    expect((await change(hub, 'ann', { name: 'eve' })).status).toBe(409);
    // The operator says so.
    expect((await change(hub, 'ann', { system_account: 'ann' })).status).toBe(200);
    await startUntilReady(hub, serverPath('ann'));
    expect(await home(hub, 'ann')).toBe(join(hub.directory, 'homes', 'ann'));
  });

  test('go with a user who is renamed', async () => {
    await using hub = await createServerHub();
    await createUsers(hub, 'ann');
    await startUntilReady(hub, serverPath('ann'));
    await change(hub, 'ann', { name: 'ann-lee' });
    await startUntilReady(hub, serverPath('ann-lee'));
    expect(await home(hub, 'ann-lee')).toBe(join(hub.directory, 'homes', 'ann'));
    await createUsers(hub, 'ann');
    expect((await start(hub, 'ann')).status).toBe(409);
    // A name that was never used is free, whoever had it.
    await createUsers(hub, 'bea');
    await call(hub, adminToken, '/users/bea', 'DELETE');
    await createUsers(hub, 'bea');
    await startUntilReady(hub, serverPath('bea'));
    await stop(hub, 'bea');
  });
});
