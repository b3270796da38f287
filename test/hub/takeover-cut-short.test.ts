import { basename } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { copiesOf, watchCopies } from '../support/managed-copies.ts';
import { fixtureFile, nodeCommand } from '../support/node-command.ts';
import { hasPostgres, queryPostgres } from '../support/postgres.ts';
import { adminToken, isAlive } from '../support/server-hub.ts';
import { createTestHub, type TestHub, testCookieSecret, until } from '../support/test-hub.ts';

interface Model {
  readonly ready: boolean;
  readonly pid: number | null;
  readonly instance: string | null;
}

async function modelAt({ apiUrl }: Pick<TestHub, 'apiUrl'>, name: string): Promise<Model> {
  const answer = await fetch(`${apiUrl}/services/${name}`, {
    headers: { authorization: `token ${adminToken}` },
  });
  return (await answer.json()) as Model;
}

async function untilReadyAt(
  hub: Pick<TestHub, 'apiUrl'> & { readonly directory: string },
  name: string,
): Promise<Model> {
  await until(async () => {
    const { ready, instance } = await modelAt(hub, name);
    return ready && instance === basename(hub.directory);
  }, `${name} runs at this instance`);
  return modelAt(hub, name);
}

/** Name of the instance to which a service belongs. */
async function ownerOf(url: string, service: string): Promise<string | undefined> {
  const [row] = await queryPostgres<{ name: string }>(
    url,
    `select instances.name from service_owners join instances on instances.id = instance_id
     where service_owners.name = $1`,
    [service],
  );
  return row?.name;
}

const names = ['cut-short-sigkill', 'cut-short-sigterm', 'run-elsewhere', 'left-alone'];
afterEach(async () => {
  // A copy that a failed test has left would be one too many for the next run of it.
  for (const name of names) for (const pid of await copiesOf(name)) process.kill(pid, 'SIGKILL');
});

describe.skipIf(!hasPostgres())('a takeover of a service that is cut short', () => {
  const cluster = usePostgres();

  async function shared(services: readonly unknown[]) {
    const Hub = {
      database_url: await cluster().createDatabase(),
      cookie_secret: testCookieSecret,
      services,
    };
    return { Hub };
  }

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'by %s between the claim and the start is gone on with by the next instance, and nothing runs twice',
    async (signal) => {
      const name = `cut-short-${signal.toLowerCase()}`;
      // What the dead one left takes its time to end, in which the heir has claimed and not begun.
      const command = nodeCommand(fixtureFile('ignores-sigterm'));
      const config = await shared([{ name, command, stop_timeout: 1 }]);
      await using dyingFolder = await createHubFolder(config);
      await using heirFolder = await createHubFolder(config);
      await using lastFolder = await createHubFolder(config);
      await using dying = await dyingFolder.start();
      const { pid } = await untilReadyAt(dyingFolder, name);
      await using heir = await heirFolder.start();
      const copies = watchCopies(name);

      dying.signal('SIGKILL');
      await dying.exited;
      const heirName = basename(heirFolder.directory);
      await until(
        async () => (await ownerOf(config.Hub.database_url, name)) === heirName,
        'the heir has claimed it',
      );
      expect(isAlive(pid ?? 0)).toBe(true);
      heir.signal(signal);
      await heir.exited;

      await using _last = await lastFolder.start();
      const last = await untilReadyAt(lastFolder, name);
      expect(isAlive(pid ?? 0)).toBe(false);
      expect(await copiesOf(name)).toEqual([last.pid]);
      expect(await copies()).toBe(1);
    },
  );

  test('is looked for where the service ran, not where its last owner died', async () => {
    const name = 'run-elsewhere';
    const config = await shared([{ name, command: ['sleep', '600'] }]);
    const { services: _, ...bare } = config.Hub;
    await using folder = await createHubFolder(config);
    await using killed = await folder.start();
    const { pid } = await untilReadyAt(folder, name);
    const port = await freePort();
    // Of the machine on which it runs.
    await using _neighbour = await createTestHub({
      Hub: {
        ...bare,
        hub_bind_url: `http://127.0.0.1:${port}`,
        // This machine too, but not by its name: a loopback address would be of its own machine only.
        instance_url: `http://0.0.0.0:${port}`,
      },
    });
    killed.signal('SIGKILL');
    await killed.exited;
    // As an instance of a second machine leaves it that claims the service and is killed there and then.
    await queryPostgres(
      bare.database_url,
      `insert into instances select (json_populate_record(instances, json_build_object(
         'id', 'second', 'name', 'second', 'machine_id', 'second machine', 'lease_until', started_at,
         'started_at', started_at))).* from instances where name = $1`,
      [basename(folder.directory)],
    );
    await queryPostgres(bare.database_url, `update service_owners set instance_id = 'second'`);

    await using third = await createTestHub(config, { machineId: 'third machine' });
    const last = await untilReadyAt(third, name);
    expect(isAlive(pid ?? 0)).toBe(false);
    expect(await copiesOf(name)).toEqual([last.pid]);
  });
});

describe.skipIf(!hasPostgres())('the only instance of a machine, when it is killed', () => {
  const cluster = usePostgres();

  async function untilTakenOver(
    { directory }: HubFolder,
    heir: TestHub,
    name: string,
  ): Promise<Model> {
    const model = await untilReadyAt(heir, name);
    const warnings = heir.logLines.filter(({ msg }) =>
      String(msg).startsWith('leftover processes of service'),
    );
    expect(warnings).toMatchObject([{ service: name, from: basename(directory) }]);
    return model;
  }

  test('ends what it left of services at its next start, also of those that run elsewhere now', async () => {
    const name = 'left-alone';
    const Hub = {
      database_url: await cluster().createDatabase(),
      cookie_secret: testCookieSecret,
      services: [{ name, command: ['sleep', '600'] }],
    };
    await using folder = await createHubFolder({ Hub });
    await using killed = await folder.start();
    const { pid } = await untilReadyAt(folder, name);
    await using heir = await createTestHub({ Hub }, { machineId: 'another machine' });
    killed.signal('SIGKILL');
    await killed.exited;
    const { pid: heirPid } = await untilTakenOver(folder, heir, name);
    expect((await copiesOf(name)).toSorted()).toEqual([pid, heirPid].toSorted());

    await using _next = await folder.start();
    await until(() => !isAlive(pid ?? 0), 'what was left is ended');
    expect(await modelAt(heir, name)).toMatchObject({ ready: true, pid: heirPid });
    expect(await copiesOf(name)).toEqual([heirPid]);
  });
});
