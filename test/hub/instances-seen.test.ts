import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { leaseMs } from '../../src/cluster/instances/instance-store.ts';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const cookieSecret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';

interface Model {
  readonly name: string;
  readonly here: boolean;
  readonly up: boolean;
  readonly down_since: string | null;
  readonly same_settings: boolean;
  readonly services: readonly string[];
  readonly gateways: readonly { readonly pid?: number }[];
  readonly figures: { readonly memory_bytes: number } | null;
  readonly problem: string | null;
}

async function instancesAt(hub: TestHub): Promise<readonly Model[]> {
  const answer = await hub.api('/instances', adminToken);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { instances: readonly Model[] }).instances;
}

describe.skipIf(!hasPostgres())('the instances of a hub', () => {
  const cluster = usePostgres();

  test('are seen by the API, the page, the metrics and the command, also one that was killed', async () => {
    const begunAt = Date.now();
    const database_url = await cluster().createDatabase();
    const services = [{ name: 'sleeper', command: ['sleep', '600'] }];
    const Hub = { database_url, cookie_secret: cookieSecret };
    await using folder = await createHubFolder({
      Hub: {
        ...Hub,
        instance_name: 'hub-b',
        services,
        title: 'Another title',
        gateways: 1,
        gateway_linger: 1,
      },
    });
    await using killed = await folder.start();
    await using hub = await createTestHub({
      Hub: { ...Hub, instance_name: 'hub-a', services },
      Authenticator: { allow_all: true, admin_users: ['ada'] },
    });
    await untilState(hub, 'sleeper', 'ready');

    await until(
      async () => (await instancesAt(hub))[1]?.gateways[0]?.pid !== undefined,
      'the gateway of the other one has told of itself',
    );
    expect(await instancesAt(hub)).toMatchObject([
      {
        name: 'hub-a',
        here: true,
        up: true,
        same_settings: true,
        services: [],
        gateways: [],
        problem: null,
      },
      {
        name: 'hub-b',
        here: false,
        up: true,
        down_since: null,
        same_settings: false,
        services: ['sleeper'],
        gateways: [
          { local: true, pid: expect.any(Number), connections: expect.any(Number), requests: 0 },
        ],
        figures: { memory_bytes: expect.any(Number) },
        problem: null,
      },
    ]);
    const metrics = async () => await (await hub.api('/metrics', adminToken)).text();
    expect(await metrics()).toContain('hub_instance_info{instance="hub-a",version="0.0.0-test"} 1');
    await until(
      async () => (await metrics()).includes('hub_instances{state="up"} 2'),
      'both are counted',
    );

    const before = await folder.command(['status']);
    expect(before.stdout).toMatch(
      /Gateways:\n +\S+-\d+ +up +since [\d-]+ [\d:]+ UTC +started by hub-b/,
    );
    killed.signal('SIGSTOP');
    const [, silent] = await instancesAt(hub);
    expect(silent).toMatchObject({ up: true, figures: null, problem: /^The instance "hub-b" of/ });

    killed.signal('SIGKILL');
    await killed.exited;
    const [, gone] = await instancesAt(hub);
    expect(gone).toMatchObject({ name: 'hub-b', up: false, figures: null });
    const downSince = Date.parse(gone?.down_since ?? '');
    // Where another instance has ended its lease, it counts as that long ago.
    expect(downSince + leaseMs).toBeGreaterThanOrEqual(begunAt);
    expect(downSince).toBeLessThanOrEqual(Date.now());
    const browser = await hub.logIn('ada');
    const page = await browser.open(`${hub.url}hub/admin/instances`);
    for (const text of ['hub-a', 'hub-b', 'Last seen', 'sleeper', '1 instance of 2 is down']) {
      expect(page.body).toContain(text);
    }
    await until(
      async () => (await metrics()).includes('hub_instances{state="down"} 1'),
      'the killed one is counted as down when its lease has ended',
    );
    await until(
      async () => (await instancesAt(hub))[0]?.services.includes('sleeper') === true,
      'the service is taken over',
    );
    await untilState(hub, 'sleeper', 'ready');
    const shown = await browser.open(`${hub.url}hub/admin/services`);
    expect(shown.body).toMatch(/data-label="Runs at"><div>hub-a/);

    let status = await folder.command(['status']);
    await until(async () => {
      status = await folder.command(['status']);
      return status.stdout.includes('ready');
    }, 'the command shows the service as ready');
    expect(status.stderr).toBe('');
    expect(status.stdout).toMatch(/hub-a +up +since [\d-]+ [\d:]+ UTC/);
    expect(status.stdout).toMatch(/hub-b +down +since/);
    expect(status.stdout).toMatch(
      /sleeper +ready +since [\d-]+ [\d:]+ UTC +at hub-a +(CPU [\d.]+ % +\d+ MiB +)?0 restarts/,
    );
    expect(status.stdout).toContain('Servers: none\nSessions: 1 of 1 user\n');
    const { stdout } = await folder.command(['status', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      instances: [
        { name: 'hub-a', up: true, down_since: null, services: ['sleeper'] },
        { name: 'hub-b', up: false, down_since: expect.any(String), services: [] },
      ],
      services: [
        {
          name: 'sleeper',
          state: 'ready',
          since: expect.stringMatching(/^2.*Z$/),
          instance: 'hub-a',
          restarts: 0,
        },
      ],
      servers: {},
      sessions: { count: 1, users: 1 },
    });
  });

  test('are for those who may read about the hub', async () => {
    await using hub = await createTestHub({
      Hub: {
        services: [
          { name: 'reader', api_token: 'token-of-reader' },
          { name: 'other', api_token: 'token-of-other' },
        ],
        load_roles: [{ name: 'readers', scopes: ['read:hub'], services: ['reader'] }],
      },
    });
    expect((await hub.api('/instances', 'token-of-reader')).status).toBe(200);
    expect((await hub.api('/instances', 'token-of-other')).status).toBe(403);
    expect((await hub.api('/instances', undefined)).status).toBe(403);
    const browser = await hub.logIn('alice');
    expect((await browser.open(`${hub.url}hub/admin/instances`)).status).toBe(403);
  });
});

test('hub status tells of a hub on SQLite whether it runs', async () => {
  await using folder = await createHubFolder({
    Hub: {
      services: [
        { name: 'sleeper', command: ['sleep', '600'] },
        { name: 'away', url: `http://127.0.0.1:${await freePort()}` },
      ],
    },
  });
  const before = await folder.command(['status']);
  expect(before.code).toBe(0);
  expect(before.stdout).toContain('No hub runs on this database.');
  expect(before.stdout).toMatch(/sleeper +stopped +runs nowhere/);
  expect(before.stdout).toContain('External services:\n  Not known: no hub answers.\n');
  await using hub = await folder.start();
  await until(
    async () => /sleeper +ready/.test((await folder.command(['status'])).stdout),
    'the service is shown as ready',
  );
  await until(
    async () =>
      /away +unhealthy +since \S+ \S+ UTC +\S/.test((await folder.command(['status'])).stdout),
    'the external service is shown as away',
  );
  // What a service uses is written down every half a minute.
  using database = new DatabaseSync(join(folder.directory, 'hub.sqlite'), { timeout: 5000 });
  database.exec(`update service_owners set status = json_set(status, '$.usage', json('{
    "cpuCores": 0.25, "memoryBytes": 104857600, "uptimeSeconds": 1, "processes": 1
  }'))`);
  const { stdout } = await folder.command(['status']);
  expect(stdout).toMatch(
    /sleeper +ready +since \S+ \S+ UTC +at \S+ +CPU 25\.0 % +100 MiB +0 restarts/,
  );
  expect(stdout).toContain('Sessions: none');
  const stopping = await fetch(`${folder.apiUrl}/services/sleeper/stop`, {
    method: 'POST',
    headers: { authorization: `token ${adminToken}` },
  });
  expect(stopping.status).toBe(202);
  await until(
    async () =>
      /sleeper +stopped .*stopped by admin-service since 2/.test(
        (await folder.command(['status'])).stdout,
      ),
    'it tells who stopped the service',
  );
  hub.signal('SIGKILL');
  await hub.exited;
  const after = await folder.command(['status']);
  expect(after.stdout).toMatch(/ down +since an unknown time/);
  expect(after.stdout).toMatch(/sleeper +stopped +runs nowhere/);
  await using _next = await folder.start();
  expect((await folder.command(['status'])).stdout).toMatch(/ up +since/);
});
