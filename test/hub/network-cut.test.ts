import { basename } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { copiesOf, watchCopies } from '../support/managed-copies.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createUsers,
  fixtureApp,
  getServer,
  isAlive,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
} from '../support/server-hub.ts';
import { serviceModel } from '../support/services.ts';
import { startSilentRelay } from '../support/silent-relay.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const nameOf = ({ directory }: TestHub) => basename(directory);
const logged = ({ logLines }: TestHub, message: RegExp) =>
  logLines.filter(({ msg }) => message.test(String(msg)));

async function untilRunBy(hub: TestHub, service: string, owner: TestHub): Promise<void> {
  await until(
    async () => {
      const { ready, instance } = await serviceModel(hub, service);
      return ready === true && instance === nameOf(owner);
    },
    `${service} runs at ${nameOf(owner)}`,
  );
}

const pidOf = async (hub: TestHub, path: string) =>
  Number((await getServer(hub, path)).state?.['pid']);

interface View {
  readonly name: string;
  readonly up: boolean;
  readonly servers: number;
  readonly services: readonly string[];
}

async function instancesAt(hub: TestHub): Promise<readonly View[]> {
  const { instances } = (await (await hub.api('/instances', adminToken)).json()) as {
    instances: View[];
  };
  return instances;
}

const services = ['behind-silence', 'behind-resets', 'behind-a-far-cut'];
afterEach(async () => {
  // A copy that a failed test has left would be one too many for the next run of it.
  for (const name of services) for (const pid of await copiesOf(name)) process.kill(pid, 'SIGKILL');
});

describe.skipIf(!hasPostgres())('a network cut between one hub and PostgreSQL', () => {
  const cluster = usePostgres();

  /** Two hubs, of which the first one has a service and the server of alice, and is about to be cut off. */
  async function startTwo(service: string, machineId?: string) {
    const url = new URL(await cluster().createDatabase());
    const stack = new AsyncDisposableStack();
    const relay = stack.use(await startSilentRelay(cluster()));
    const database_url = url.href;
    url.port = String(relay.port);
    const config = (address: string) => ({
      Hub: { database_url: address, services: [{ name: service, command: ['sleep', '600'] }] },
      Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
    });
    const cutOff = stack.use(await createTestHub(config(url.href)));
    await untilRunBy(cutOff, service, cutOff);
    await createUsers(cutOff, 'alice', 'bob');
    await startUntilReady(cutOff, serverPath('alice'));
    const other = stack.use(
      await createTestHub(config(database_url), machineId === undefined ? {} : { machineId }),
    );
    const pid = await pidOf(cutOff, serverPath('alice'));
    stack.defer(() => {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    });
    return { stack, relay, cutOff, other, pid };
  }

  test.each([
    { cut: 'in which packets vanish', service: 'behind-silence' },
    { cut: 'in which connections are reset', service: 'behind-resets' },
  ])(
    '$cut: what it owned goes on at another one, once, and it comes back as a member',
    async ({ service }) => {
      const { stack, relay, cutOff, other, pid } = await startTwo(service);
      await using _ = stack;
      const copies = watchCopies(service);
      const [servicePid] = await copiesOf(service);

      if (service === 'behind-silence') relay.fallSilent();
      else relay.cut();
      // It gives up first; no other may take before the lease has ended.
      await until(() => !isAlive(servicePid ?? 0), 'its service is ended');
      expect(logged(cutOff, /instance lease lost/)).toHaveLength(1);
      await untilRunBy(other, service, other);
      await until(
        () => logged(other, /^server taken over/).length === 1,
        'the server is taken over',
      );
      expect(await getServer(other, serverPath('alice'))).toMatchObject({ ready: true });
      expect(await pidOf(other, serverPath('alice'))).toBe(pid);
      expect((await startServer(cutOff, serverPath('bob'))).status).toBe(503);

      relay.heal();
      await until(() => logged(cutOff, /instance lease regained/).length === 1, 'it is back');
      await until(
        () => logged(cutOff, /^server left to/).length === 1,
        'it leaves the server alone',
      );
      await until(
        async () => (await serviceModel(cutOff, service))['instance'] === nameOf(other),
        'it knows who has the service',
      );
      await until(async () => (await instancesAt(other)).every(({ up }) => up), 'both are up');
      expect(isAlive(pid)).toBe(true);
      expect(await getServer(cutOff, serverPath('alice'))).toMatchObject({ ready: true });
      expect(await copies()).toBe(1);

      // A member as before: it starts servers, and others' stops reach it.
      await startUntilReady(cutOff, serverPath('bob'));
      const bobs = await pidOf(cutOff, serverPath('bob'));
      expect((await stopServer(other, serverPath('bob'))).status).toBe(204);
      await until(() => !isAlive(bobs), 'the server of bob has ended');
      await stopServer(cutOff, serverPath('alice'));
      await until(() => !isAlive(pid), 'the server of alice has ended');
    },
  );

  test('of another machine: users’ servers live on, are shown as unreachable, and come back', async () => {
    const service = 'behind-a-far-cut';
    const { stack, relay, cutOff, other, pid } = await startTwo(service, 'another machine');
    await using _ = stack;
    const copies = watchCopies(service);
    relay.fallSilent();
    await until(
      async () => (await getServer(other, serverPath('alice'))).unreachable_since !== null,
      'it is shown as unreachable',
    );
    await untilRunBy(other, service, other);
    expect(isAlive(pid)).toBe(true);
    relay.heal();
    await until(async () => (await getServer(other, serverPath('alice'))).ready, 'it is back');
    expect(await pidOf(other, serverPath('alice'))).toBe(pid);
    expect(await getServer(cutOff, serverPath('alice'))).toMatchObject({ ready: true });
    expect(logged(other, /^server taken over/)).toEqual([]);
    expect(await copies()).toBe(1);
    await stopServer(cutOff, serverPath('alice'));
  });
});
