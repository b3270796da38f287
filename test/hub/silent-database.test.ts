import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { type SilentRelay, startSilentRelay } from '../support/silent-relay.ts';
import { until } from '../support/test-hub.ts';

describe.skipIf(!hasPostgres())('SIGTERM while PostgreSQL gives no answer', () => {
  const cluster = usePostgres();
  let relay: SilentRelay;
  let folder: HubFolder;

  beforeEach(async () => {
    const url = new URL(await cluster().createDatabase());
    relay = await startSilentRelay(cluster());
    url.port = String(relay.port);
    folder = await createHubFolder({ Hub: { database_url: url.href, keyv_url: url.href } });
  });
  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
  });

  const api = (path: string, method = 'GET') =>
    fetch(folder.apiUrl + path, { method, headers: { authorization: `token ${adminToken}` } });

  async function expectEnd(hub: ReturnType<typeof spawnHubProcess>): Promise<void> {
    hub.signal('SIGTERM');
    expect(await hub.exited).toBe(0);
    expect(hub.logged(/^hub stopped$/)).toHaveLength(1);
    expect(hub.stderr()).not.toContain('ended while something still ran');
  }

  test('ends an idle hub', async () => {
    const hub = await folder.start();
    relay.fallSilent();
    await expectEnd(hub);
  });

  test('ends a hub with requests that wait for it, with something to store, and answers them', async () => {
    const hub = await folder.start();
    expect((await api('/users/alice', 'POST')).status).toBe(201);
    expect((await api('/users/alice/activity', 'POST')).status).toBeLessThan(500);
    relay.fallSilent();
    const names = ['bob', 'carol', 'dave', 'erin', 'frank'];
    const asked = names.map((name) => api(`/users/${name}`, 'POST'));
    await until(() => relay.unreceivedCount >= names.length, 'the requests wait');
    await expectEnd(hub);
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(503);
  });

  test.each(['pg_advisory_xact_lock', 'listen hub_changed', 'hub_id'])(
    'ends a start that waits for the answer to %s',
    async (statement) => {
      relay.fallSilentAt(statement);
      await using hub = spawnHubProcess(['start', '--config', folder.configFile], {
        cwd: folder.directory,
      });
      await until(() => relay.isSilent, 'the start waits');
      await expectEnd(hub);
      expect(hub.stdout()).toBe('');
    },
  );
});
