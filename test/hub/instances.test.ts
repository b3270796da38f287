import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken, fixtureApp, isAlive } from '../support/server-hub.ts';
import { managedService } from '../support/services.ts';
import { createTestHub, until } from '../support/test-hub.ts';

const cookieSecret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';

async function get<Body>(folder: HubFolder, path: string, method = 'GET'): Promise<Body> {
  const answer = await fetch(folder.apiUrl + path, {
    method,
    headers: { authorization: `token ${adminToken}` },
  });
  return (await answer.json()) as Body;
}

describe.skipIf(!hasPostgres())('hubs on one PostgreSQL', () => {
  const cluster = usePostgres();

  test('a second start with the name of a running hub is refused at once and harms nothing', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      cookie_secret: cookieSecret,
      cleanup_servers: true,
      instance_name: 'hub-a',
    };
    await using first = await createHubFolder({
      Hub: {
        ...shared,
        services: [await managedService('app', 'fixtures/apps/prints-environment.cjs')],
      },
      Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
    });
    await using second = await createHubFolder({ Hub: shared });
    await using hub = await first.start();
    const service = async () =>
      await get<{ state: string; pid: number; restarts: number }>(first, '/services/app');
    await until(async () => (await service()).state === 'ready', 'the service is ready');
    const before = await service();
    await get(first, '/users/alice', 'POST');
    await get(first, '/users/alice/server', 'POST').catch(() => undefined);
    const server = async () =>
      (
        await get<{ servers: Record<string, { ready: boolean; state: { pid: number } }> }>(
          first,
          '/users/alice',
        )
      ).servers[''];
    await until(async () => (await server())?.ready === true, 'the server is ready');
    const pid = (await server())?.state.pid ?? 0;

    const { code, stderr, stdout } = await second.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(
        `Another hub named "hub-a" runs on this database \\(process ${hub.pid} on .*, version .*, since .*\\)\\. ` +
          'Stop it first, or give each a Hub\\.instance_name of its own\\.',
      ),
    );
    expect(stdout).toBe('');

    expect(isAlive(pid)).toBe(true);
    expect((await server())?.ready).toBe(true);
    expect(await service()).toMatchObject({ pid: before.pid, restarts: 0 });
    expect(await first.command(['reload'])).toMatchObject({ code: 0 });
    hub.signal('SIGTERM');
    expect(await hub.exited).toBe(0);
  });

  test('a hub that was killed has its name again at once', async () => {
    await using folder = await createHubFolder({
      Hub: { database_url: await cluster().createDatabase() },
    });
    const killed = await folder.start();
    killed.signal('SIGKILL');
    await killed.exited;
    await using next = await folder.start();
    expect(next.logged(/waiting/)).toEqual([]);
  });

  test('a hub of the same name on another machine is waited for, and refused once it shows life', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      cookie_secret: cookieSecret,
      instance_name: 'hub-a',
    };
    await using first = await createTestHub({ Hub: shared }, { machineId: 'elsewhere' });
    await using folder = await createHubFolder({ Hub: shared });
    await using second = spawnHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
    });
    expect(await second.exited).toBe(1);
    expect(second.logged(/waiting until the lease/)).toHaveLength(1);
    expect(second.stderr()).toContain('Another hub named "hub-a" runs on this database');
    expect((await first.api('/users', adminToken)).status).toBe(200);
  });

  test.each([
    [
      'cookie_secret',
      { cookie_secret: cookieSecret.split('').toReversed().join('') },
      'has another Hub.cookie_secret',
    ],
    ['path', { path: 'team/' }, 'serves the path /, this one /team/'],
  ])('a hub with another %s is refused with the reason', async (_, given, reason) => {
    const database_url = await cluster().createDatabase();
    await using _first = await createTestHub({ Hub: { database_url } });
    const { path = '', ...Hub } = given as { path?: string };
    await using folder = await createHubFolder({
      Hub: { database_url, cookie_secret: cookieSecret, ...Hub },
    });
    await folder.configure({
      Hub: {
        database_url,
        cookie_secret: cookieSecret,
        bind_url: `${folder.url}${path}`,
        ...Hub,
      },
    });
    const { code, stderr } = await folder.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toContain(reason);
  });
});
