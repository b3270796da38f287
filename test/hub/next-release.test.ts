import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newestVersion } from '../../src/platform/store/migrate.ts';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { hasPostgres, queryPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const cookieSecret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';
const nextRelease = {
  NODE_OPTIONS: `--import=${join(projectDirectory, 'test/support/next-release.ts')}`,
};
const refusal = new RegExp(
  `database has version ${newestVersion() + 1}, this hub knows ${newestVersion()}: start the newer hub`,
);

async function ask(folder: HubFolder, method: string, path: string, token = adminToken) {
  const headers = { authorization: `token ${token}`, 'content-type': 'application/json' };
  const body = method === 'POST' ? { body: '{}' } : {};
  const answer = await fetch(folder.apiUrl + path, { method, headers, ...body });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

const statusAt = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status;

describe.skipIf(!hasPostgres())('a hub and one of the next release on one PostgreSQL', () => {
  const cluster = usePostgres();

  test('both answer while the other writes, from a database of the first release on, and no request fails', async () => {
    const database_url = await cluster().createEmptyDatabase();
    const fixture = join(projectDirectory, 'fixtures/databases/0.1.0.postgres.sql');
    await queryPostgres(database_url, readFileSync(fixture, 'utf8'));
    const shared = { database_url, cookie_secret: cookieSecret };
    await using oldFolder = await createHubFolder({ Hub: { ...shared, instance_name: 'old' } });
    await using newFolder = await createHubFolder({ Hub: { ...shared, instance_name: 'new' } });
    await using old = await oldFolder.start();
    const versionOf = async () =>
      (await queryPostgres<{ version: number }>(database_url, 'select version from hub_schema'))[0];
    expect(await versionOf()).toEqual({ version: newestVersion() });

    // The load: accounts that are made and read, one after the other, at the old one.
    const load = { asked: 0, failed: [] as string[], ends: false };
    const loading = (async () => {
      while (!load.ends) {
        const name = `load-${load.asked}`;
        const found = [
          await statusAt(oldFolder, 'POST', `/users/${name}`).catch(String),
          await statusAt(oldFolder, 'GET', `/users/${name}`).catch(String),
        ];
        load.asked += 1;
        if (`${found}` !== '201,200') load.failed.push(`${name}: ${found}`);
      }
    })();
    await using _load = {
      async [Symbol.asyncDispose]() {
        load.ends = true;
        await loading;
      },
    };
    const underLoad = async () => {
      const before = load.asked;
      await until(() => load.asked > before + 5, 'the load goes on');
    };

    await underLoad();
    await using next = await newFolder.start(undefined, nextRelease);
    expect(await versionOf()).toEqual({ version: newestVersion() + 1 });
    await underLoad();

    const pairs = [
      [oldFolder, newFolder],
      [newFolder, oldFolder],
    ] as const;
    for (const [writer, reader] of pairs) {
      const name = writer === oldFolder ? 'from-old' : 'from-new';
      expect(await statusAt(writer, 'POST', `/users/${name}`)).toBe(201);
      expect((await ask(reader, 'GET', `/users/${name}`)).body).toMatchObject({ name });
      const { body } = await ask(writer, 'POST', `/users/${name}/tokens`);
      const { id, token } = body as { id: string; token: string };
      expect((await ask(reader, 'GET', '/user', token)).body).toMatchObject({ name });
      // What one has remembered ends with what the other does.
      expect(await statusAt(writer, 'DELETE', `/users/${name}/tokens/${id}`)).toBe(204);
      await until(
        async () => (await statusAt(reader, 'GET', '/user', token)) === 403,
        'the token is refused by the other',
      );
    }
    await underLoad();

    // Back: the new one is gone, and the old one has never stopped.
    next.signal('SIGTERM');
    expect(await next.exited).toBe(0);
    await underLoad();
    load.ends = true;
    await loading;
    expect(load.failed).toEqual([]);
    expect((await ask(oldFolder, 'GET', '/users/from-new')).body).toMatchObject({
      name: 'from-new',
    });

    old.signal('SIGTERM');
    expect(await old.exited).toBe(0);
    const { code, stderr } = await oldFolder.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toMatch(refusal);
  });
});

test('a hub goes back to the SQLite database that one of the next release has kept for it', async () => {
  await using folder = await createHubFolder({});
  {
    await using _old = await folder.start();
    expect(await statusAt(folder, 'POST', '/users/early')).toBe(201);
  }
  {
    await using _new = await folder.start(undefined, nextRelease);
    expect(await statusAt(folder, 'GET', '/users/early')).toBe(200);
    expect(await statusAt(folder, 'POST', '/users/late')).toBe(201);
  }
  const refused = await folder.run(['start']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(refusal)]);

  const [kept = ''] = readdirSync(folder.directory).filter((name) => name.includes('.before-'));
  expect(kept).toBe('hub.sqlite.before-next-release');
  expect(await folder.run(['restore', join(folder.directory, kept)])).toMatchObject({ code: 0 });
  await using _again = await folder.start();
  expect(await statusAt(folder, 'GET', '/users/early')).toBe(200);
  expect(await statusAt(folder, 'GET', '/users/late')).toBe(404);
});
