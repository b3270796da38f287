import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { canRunPods, useKubernetesApi } from '../support/kubernetes-api.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  guarded,
  readEvents,
  type ServerModel,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const trivial = ['perl', join(projectDirectory, 'fixtures/apps/trivial.pl')];
const workspace = guarded(
  process.execPath,
  join(projectDirectory, 'examples/workspace/workspace.ts'),
);
const ada = serverPath('ada');

describe.runIf(canRunPods())('servers in pods', () => {
  const api = useKubernetesApi();
  const collection = (kind: string) => `/api/v1/namespaces/${api().namespace}/${kind}`;
  // biome-ignore lint/suspicious/noExplicitAny: the objects of the API, whose fields tests pick out.
  const list = async (kind: string): Promise<any[]> =>
    (await api().request('GET', collection(kind))).body.items;

  /** Pods share the network of this machine, each with an address of its own. */
  const pods = (options: object = {}) => ({
    kubeconfig: api().kubeconfigPath,
    namespace: api().namespace,
    image: 'lab:1',
    run_as_user: 1000,
    listen_ip: '{pod_ip}',
    ...options,
  });

  async function addresses() {
    const port = await freePort();
    return {
      hub_bind_url: `http://0.0.0.0:${port}`,
      hub_connect_url: `http://${hostname()}:${port}`,
    };
  }

  async function createHub(
    options: object = {},
    Spawner: Readonly<Record<string, unknown>> = {},
    Hub: Readonly<Record<string, unknown>> = {},
  ) {
    return createServerHub({
      Hub: { ...(await addresses()), ...Hub },
      Spawner: {
        class: 'kubernetes',
        cmd: trivial,
        start_timeout: 300,
        slow_start_timeout: 0,
        ...Spawner,
      },
      KubernetesSpawner: pods(options),
    });
  }

  afterEach(async () => {
    for (const kind of ['pods', 'secrets', 'persistentvolumeclaims']) {
      for (const { metadata } of await list(kind)) {
        const path = `${collection(kind)}/${metadata.name}`;
        await api().request('DELETE', path, { gracePeriodSeconds: 0 });
      }
    }
  });

  test('are workspaces behind the login, whose files outlive the pod', async () => {
    await using hub = await createHub(
      {
        claims: [{ name: 'home-{username}', mount_path: '/home/user' }],
        fs_group: 1000,
        working_dir: '/home/user',
      },
      { cmd: workspace, access: 'server' },
    );
    const browser = await hub.logIn('alice');
    const path = serverPath('alice');
    await startUntilReady(hub, path);
    const [pod] = await list('pods');
    expect(pod.metadata.labels).toMatchObject({ 'hub/user': 'alice' });
    expect(JSON.stringify(pod)).not.toContain('hub_');

    const page = `${hub.url}user/alice/`;
    const answer = await browser.open(page);
    expect(answer.status).toBe(200);
    expect(answer.body).toContain('alice');
    const pid = await api().pidOf(api().namespace, pod.metadata.name);
    await writeFile(`/proc/${pid}/root/home/user/kept.txt`, 'kept');
    await until(
      async () => (await browser.open(page)).body.includes('kept.txt'),
      'the file is shown',
    );

    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
    await startUntilReady(hub, path);
    expect((await browser.open(page)).body).toContain('kept.txt');
  });

  test('of a renamed user keep their volume, which no later user of the name gets', async () => {
    const claims = [{ name: 'home-{username}', mount_path: '/home/user' }];
    await using hub = await createHub({ claims, delete_claims: true });
    const claimNames = async () =>
      (await list('persistentvolumeclaims')).map(({ metadata }) => metadata.name);
    const change = (name: string, init: RequestInit) => hub.api(`/users/${name}`, adminToken, init);
    await createUsers(hub, 'ada');
    await startUntilReady(hub, ada);
    expect(await claimNames()).toEqual(['home-ada']);
    const body = JSON.stringify({ name: 'grace' });
    expect((await change('ada', { method: 'PATCH', body })).status).toBe(200);
    const grace = serverPath('grace');
    await untilServer(hub, grace, ({ stopped }) => stopped, 'the server is stopped');
    await startUntilReady(hub, grace);
    expect(await claimNames()).toEqual(['home-ada']);

    await createUsers(hub, 'ada');
    const refused = await startServer(hub, ada);
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('The account ada on the machine of the servers'),
    ]);
    expect((await change('ada', { method: 'DELETE' })).status).toBe(204);
    expect(await claimNames()).toEqual(['home-ada']);

    expect((await change('grace', { method: 'DELETE' })).status).toBe(204);
    expect(await claimNames()).toEqual([]);
  });

  test('leave a volume that outlives the last of them, and goes with the user', async () => {
    const claims = [{ name: 'home-{username}', mount_path: '/home/user' }];
    await using hub = await createHub(
      { claims, delete_claims: true },
      {},
      { allow_named_servers: true },
    );
    await createUsers(hub, 'ada');
    const lab = serverPath('ada', 'lab');
    await startUntilReady(hub, lab);
    await stopServer(hub, lab);
    await untilServer(hub, lab, ({ stopped }) => stopped, 'the server is stopped');
    expect((await stopServer(hub, lab, { remove: true })).status).toBe(204);
    expect(await list('persistentvolumeclaims')).toHaveLength(1);
    expect((await hub.api('/users/ada', adminToken, { method: 'DELETE' })).status).toBe(204);
    expect(await list('persistentvolumeclaims')).toEqual([]);
  });

  test('wait for a node without a timeout, and say on the page for what', async () => {
    await using hub = await createHub({ node_selector: { disk: 'ssd' } }, { start_timeout: 1 });
    await createUsers(hub, 'ada');
    await startServer(hub, ada);
    const events = readEvents(await hub.api(`${ada}/progress`, adminToken));
    await until(async () => (await list('pods')).length === 1, 'the pod waits');
    const waitsSince = performance.now();
    await until(() => performance.now() - waitsSince > 1_500, 'the timeout is over');
    expect(await getServer(hub, ada)).toMatchObject({ pending: 'spawn', failure: null });
    await api().addNode({ name: 'with-ssd', labels: { disk: 'ssd' } });
    await untilServer(hub, ada, ({ ready }) => ready, 'the server is ready');
    const messages = (await events).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringMatching(/^Waiting for a node with room: 0\/1/));
    expect(messages).toContain('The server is ready.');
    await api().removeNode('with-ssd');
  });

  test('tell on the page why they ended', async () => {
    await using hub = await createHub({}, { mem_limit: '200M', poll_interval: 1 });
    await createUsers(hub, 'ada');
    await startUntilReady(hub, ada);
    const [pod] = await list('pods');
    await api().killForMemory(api().namespace, pod.metadata.name);
    const ended = await untilServer(hub, ada, ({ stopped }) => stopped, 'the end is noticed');
    expect(ended.failure?.message).toBe('The server ended: out of memory at 200 MiB.');
  });

  test('keep the output of a start that failed', async () => {
    const cmd = ['sh', '-c', 'echo no licence here >&2; exit 4'];
    await using hub = await createHub({}, { cmd });
    await createUsers(hub, 'ada');
    await startServer(hub, ada);
    const { failure } = await untilServer(
      hub,
      ada,
      (server) => server.failure !== null,
      'the start has failed',
    );
    expect(failure?.message).toContain('(code 4)');
    expect(failure?.output).toEqual(['no licence here']);
  });

  test('are lost by no hub that is killed while they start, and none is started twice', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `user-${index}`);
    await api().setImage('slow:1', { pullMs: 2_000 });
    const Hub = await addresses();
    await using folder = await createHubFolder({
      Hub: { ...Hub, concurrent_spawn_limit: 0, cleanup_servers: false },
      Spawner: { class: 'kubernetes', cmd: trivial, access: 'gateway', start_timeout: 300 },
      KubernetesSpawner: pods({ image: 'slow:1', orphan_grace: 2 }),
    });
    const call = (path: string, init: RequestInit = {}) =>
      fetch(`${Hub.hub_connect_url}/hub/api${path}`, {
        ...init,
        headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
      });
    const startAll = () =>
      Promise.allSettled(names.map((name) => call(serverPath(name), { method: 'POST' })));
    const models = () =>
      Promise.all(
        names.map(async (name) => (await (await call(serverPath(name))).json()) as ServerModel),
      );
    const serversOf = async () =>
      (await list('pods')).map(({ metadata }) => metadata.labels['hub/server-id'] as string);

    const first = await folder.start();
    await call('/users', { method: 'POST', body: JSON.stringify({ usernames: names }) });
    const asked = startAll();
    const hasSaved = async () =>
      (await models()).filter(({ state }) => state?.['uid'] !== undefined).length;
    await until(async () => (await hasSaved()) >= 4, 'some starts have kept their pods');
    first.signal('SIGKILL');
    await first.exited;
    await asked;
    const before = (await list('pods')).map(({ metadata }) => metadata.uid as string);

    await folder.start();
    await until(
      async () => (await models()).every(({ ready, stopped }) => ready || stopped),
      'each server is ready or stopped',
    );
    const resumed = (await list('pods')).map(({ metadata }) => metadata.uid as string);
    expect(resumed.filter((uid) => before.includes(uid)).length).toBeGreaterThan(0);
    // Those that were resumed run already.
    for (const answer of await startAll()) {
      expect(answer).toMatchObject({ status: 'fulfilled' });
      if (answer.status === 'fulfilled') expect([201, 202, 400]).toContain(answer.value.status);
    }
    await until(async () => {
      const started = await models();
      expect(started.flatMap(({ failure }) => failure ?? [])).toEqual([]);
      return started.every(({ ready }) => ready);
    }, 'all are ready');
    await until(async () => (await serversOf()).length === names.length, 'each has one pod');
    expect(new Set(await serversOf()).size).toBe(names.length);
    for (const name of names) {
      const headers = { authorization: `token ${adminToken}` };
      const answer = await fetch(`${folder.url}user/${name}/`, { headers });
      expect(await answer.text()).toBe('ok\n');
    }
    await Promise.all(names.map((name) => call(serverPath(name), { method: 'DELETE' })));
    await until(async () => (await list('pods')).length === 0, 'all pods are gone');
    expect(await list('secrets')).toEqual([]);
  });

  describe.skipIf(!hasPostgres())('of two hubs', () => {
    const postgres = usePostgres();

    test('are served, watched and stopped by each of them', async () => {
      const shared = { database_url: await postgres().createDatabase() };
      await using first = await createHub({}, { poll_interval: 1 }, shared);
      await using second = await createHub({}, { poll_interval: 1 }, shared);
      await createUsers(first, 'ada');
      await startUntilReady(first, ada);
      await until(async () => (await getServer(second, ada)).ready, 'the other one knows it');
      const browser = await second.logIn('ada');
      // What another one has started reaches the gateway by the feed of changes.
      await until(
        async () => (await browser.open(`${second.url}user/ada/`)).body === 'ok\n',
        'the other one serves it',
      );
      await stopServer(second, ada);
      await untilServer(first, ada, ({ stopped }) => stopped, 'the server is stopped');
      expect(await list('pods')).toEqual([]);

      await startUntilReady(second, ada);
      const [pod] = await list('pods');
      const path = `${collection('pods')}/${pod.metadata.name}`;
      await api().request('DELETE', path, { gracePeriodSeconds: 1 });
      const ended = await untilServer(first, ada, ({ stopped }) => stopped, 'the end is seen');
      expect(ended.failure?.message).toBe('The server ended: its pod was deleted.');
    });
  });
});
