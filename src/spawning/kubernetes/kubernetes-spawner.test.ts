import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node';
import { afterEach, describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { testSurroundings } from '../../../test/contract/test-host.ts';
import { canRunPods, useKubernetesApi } from '../../../test/support/kubernetes-api.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { SpawnProgress, SpawnRequest } from '../../plugin-host/spawn-request.ts';
import type { SpawnedServer, Spawner, SpawnerHost } from '../../plugin-host/spawner.ts';
import { kubernetesPlugin } from './kubernetes-plugin.ts';

interface Rule {
  readonly resources: readonly string[];
}

/** The Role of the how-to, which is all that the spawner may need. */
async function documentedRole(): Promise<{ readonly rules: readonly Rule[] }> {
  const page = join(import.meta.dirname, '../../../docs/how-to/run-on-kubernetes.md');
  const [, yaml = ''] =
    /```yaml\n# hub-spawner-role\.yaml\n(.*?)```/s.exec(await readFile(page, 'utf8')) ?? [];
  return loadYaml(yaml);
}

const hubId = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';
const sleeps = ['perl', '-e', '$| = 1; $SIG{TERM} = sub { exit }; print "ready\\n"; sleep 600'];
const ignores = ['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 0.2; done'];

describe.runIf(canRunPods())('a server in a pod', () => {
  const api = useKubernetesApi();
  const spawners: Spawner[] = [];
  const signal = () => AbortSignal.timeout(60_000);
  const collection = (kind: string) => `/api/v1/namespaces/${api().namespace}/${kind}`;
  // biome-ignore lint/suspicious/noExplicitAny: the objects of the API, whose fields tests pick out.
  const list = async (kind: string): Promise<any[]> =>
    (await api().request('GET', collection(kind))).body.items;

  async function create(options: object = {}, changed: Partial<SpawnerHost> = {}) {
    const logged: string[] = [];
    const record = (fields: object, message: string) =>
      void logged.push(`${message} ${JSON.stringify(fields)}`);
    const spawner = (await kubernetesPlugin.create(
      kubernetesPlugin.optionsSchema.parse({
        kubeconfig: api().kubeconfigPath,
        namespace: api().namespace,
        image: 'lab:1',
        run_as_user: 1000,
        listen_ip: '{pod_ip}',
        ...options,
      }),
      {
        ...testSurroundings,
        log: { debug: record, info: record, warn: record, error: record },
        runtimeDirectory: '/nowhere',
        hubId,
        activeServers: async (ids) => new Set(ids),
        ...changed,
      },
    )) as Spawner;
    spawners.push(spawner);
    await spawner.open?.();
    return { spawner, logged };
  }

  function request(changed: Partial<SpawnRequest> = {}): SpawnRequest {
    return createSpawnRequest({ command: sleeps, ...changed });
  }

  const uidOf = ({ state }: Pick<SpawnedServer, 'state'>) => String(state['uid']);
  const podOf = ({ state }: Pick<SpawnedServer, 'state'>) => String(state['pod']);
  const failureOf = (starting: Promise<unknown>) =>
    starting.then(
      () => 'it started',
      (error: Error) => error.message,
    );

  afterEach(async () => {
    await api().startApi();
    await api().clearFaults();
    await api().setDenials([]);
    for (const spawner of spawners.splice(0)) await spawner[Symbol.asyncDispose]?.();
    for (const kind of ['pods', 'secrets', 'persistentvolumeclaims', 'resourcequotas']) {
      for (const { metadata } of await list(kind)) {
        const body = { gracePeriodSeconds: 0 };
        const path = `${collection(kind)}/${metadata.name}`;
        if (metadata.finalizers?.includes('test/stays') === true) {
          await api().request('PATCH', path, { metadata: { finalizers: null } }, mergePatch);
        }
        await api().request('DELETE', path, body);
      }
    }
    await until(async () => (await list('pods')).length === 0, 'all pods are gone');
  });

  const mergePatch = 'application/merge-patch+json';

  test('is labelled, keeps the restricted standard and has its token in a Secret of its own', async () => {
    const { spawner } = await create({ labels: { team: 'physics' } });
    const environment = { HUB_API_TOKEN: 'hub_secret', GREETING: 'hello' };
    const lines: string[] = [];
    const server = await spawner.start(
      request({
        environment,
        userName: 'Ann@example.org',
        serverName: 'lab',
        command: ['sh', '-c', 'echo $GREETING $HUB_API_TOKEN $$; exec sleep 600'],
        onOutput: (line) => lines.push(line),
      }),
    );
    const [pod] = await list('pods');
    expect(pod.metadata.labels).toMatchObject({
      team: 'physics',
      'app.kubernetes.io/managed-by': 'hub',
      'hub/instance': hubId,
      'hub/server-id': 'server-1',
    });
    expect(pod.metadata.annotations).toMatchObject({
      'hub/user-name': 'Ann@example.org',
      'hub/server-name': 'lab',
    });
    expect(JSON.stringify(pod)).not.toContain('hub_secret');
    const [secret] = await list('secrets');
    expect(atob(secret.data.HUB_API_TOKEN)).toBe('hub_secret');
    expect(secret.metadata.ownerReferences).toMatchObject([
      { kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid },
    ]);
    await until(() => lines.includes('hello hub_secret 1'), 'it has its environment');
    expect(server.url).toBe(`http://${pod.status.podIP}:8888`);

    await spawner.stop(server.state, { graceMs: 1_000, signal: signal() });
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('needs no more rights than the Role of the documentation', async () => {
    await using role = await giveRole();
    const claims = [{ name: 'home-{username}', mount_path: '/home/user' }];
    const kubeconfig = role.kubeconfigPath;
    const { spawner, logged } = await create({ kubeconfig, claims, delete_claims: true });
    const server = await spawner.start(request());
    await spawner.stop(server.state, { graceMs: 1_000, signal: signal() });
    await spawner.discard?.('server-1', { graceMs: 1_000, isOurs: () => true });
    const identity = createSpawnRequest({ serverId: 'server-1' });
    await spawner.delete?.(identity, { withUser: true, signal: signal() });
    expect(await list('persistentvolumeclaims')).toEqual([]);
    expect(logged).toEqual([]);
    for (const kind of ['pods', 'secrets', 'persistentvolumeclaims']) {
      await role.remove(kind);
      const refused = request({ serverId: `without-${kind}`, objectName: kind, userName: kind });
      expect(await failureOf(spawner.start(refused))).toMatch(
        new RegExp(`The hub's account system:serviceaccount:.*:hub may not \\w+ ${kind} in`),
      );
    }
  });

  test('is what hub doctor looks at the rights of the hub for', async () => {
    await using role = await giveRole();
    const claims = [{ name: 'home-{username}', mount_path: '/home/user' }];
    const examine = async (options: object) => {
      const { spawner } = await create({ kubeconfig: role.kubeconfigPath, claims, ...options });
      return spawner.examine?.({ signal: signal(), profileOptions: new Map([[undefined, {}]]) });
    };
    const states = [{ check: 'API' }, { check: 'rights' }, { check: 'namespace hub-servers' }];
    expect(await examine({})).toMatchObject(states.map((each) => ({ ...each, state: 'ok' })));
    expect(await list('secrets')).toEqual([]);

    await role.remove('persistentvolumeclaims');
    expect((await examine({ delete_claims: true }))?.[1]).toEqual({
      check: 'rights',
      state: 'failed',
      detail:
        'missing in hub-servers: get persistentvolumeclaims, create persistentvolumeclaims, delete persistentvolumeclaims',
      fix: expect.stringContaining('Role'),
    });
    const administrator = { kubeconfig: api().kubeconfigPath, namespace: 'nowhere' };
    expect((await examine(administrator))?.[2]).toMatchObject({
      check: 'namespace nowhere',
      state: 'failed',
      detail: 'The cluster has no namespace nowhere',
    });
    await api().stopApi();
    expect(await examine({})).toMatchObject([
      { check: 'API', state: 'failed', detail: expect.stringMatching(/does not answer: nothing/) },
    ]);
    await api().startApi();
  });

  test('says on the page what it waits for, and waits for a node as long as it takes', async () => {
    await api().setImage('slow:1', { pullMs: 300 });
    const { spawner } = await create({ image: 'slow:1', node_selector: { disk: 'ssd' } });
    const events: SpawnProgress[] = [];
    const starting = spawner.start(request({ onProgress: (event) => events.push(event) }));
    const hasSaid = (text: string) => events.some(({ message }) => message.includes(text));
    await until(() => hasSaid('Waiting for a node with room'), 'it waits for a node');
    expect(events.at(-1)).toMatchObject({ phase: 'pending', reason: expect.any(String) });
    await api().addNode({ name: 'with-ssd', labels: { disk: 'ssd' } });
    await starting;
    await api().removeNode('with-ssd');
    const messages = events.map(({ message }) => message);
    expect(messages).toContain('Pulling the image slow:1.');
    expect(events.find(({ message }) => message.startsWith('Pulling'))?.phase).toBe('pulling');
    expect(messages.at(-1)).toBe('The server is started.');
  });

  test('does not wait longer for a node than is configured', async () => {
    const { spawner } = await create({ node_selector: { disk: 'none' }, schedule_timeout: 0.5 });
    expect(await failureOf(spawner.start(request()))).toMatch(
      /^The server did not start within 0.5 seconds\. Waiting for a node with room: /,
    );
    expect(await list('pods')).toEqual([]);
  }, 40_000);

  test('says that its volume is not there yet', async () => {
    await api().request('POST', '/apis/storage.k8s.io/v1/storageclasses', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'slow' },
      provisioner: 'fixture.hub/folders',
      volumeBindingMode: 'Immediate',
    });
    await api().setStorage('slow', { failure: 'no space on the storage server' });
    const claims = [{ name: 'home-{username}', mount_path: '/data', storage_class: 'slow' }];
    const { spawner } = await create({ claims });
    const messages: string[] = [];
    const onProgress = ({ message }: SpawnProgress) => void messages.push(message);
    const starting = spawner.start(request({ onProgress }));
    const hasSaid = (text: string) => messages.some((message) => message.includes(text));
    await until(() => hasSaid('Waiting for storage'), 'it waits for its volume');
    await api().setStorage('slow', { failure: null });
    await starting;
  });

  test('has a volume of its user that outlives it, until its user is deleted', async () => {
    const claims = [{ name: 'home-{username}', mount_path: '/data', size: '1Gi' }];
    const { spawner } = await create({ claims, fs_group: 1000, delete_claims: true });
    const lines: string[] = [];
    const script = 'cat /data/kept; echo before > /data/kept; echo written; sleep 600';
    const command = ['sh', '-c', script];
    const start = () => spawner.start(request({ command, onOutput: (line) => lines.push(line) }));
    const first = await start();
    await until(() => lines.includes('written'), 'the file is written');
    expect(lines).not.toContain('before');
    await spawner.stop(first.state, { graceMs: 0, signal: signal() });
    const second = await start();
    await until(() => lines.includes('before'), 'the file is there');
    await spawner.stop(second.state, { graceMs: 0, signal: signal() });

    const [claim] = await list('persistentvolumeclaims');
    expect(claim).toMatchObject({
      metadata: { name: 'home-ann', labels: { 'hub/user': 'ann', 'hub/instance': hubId } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const identity = createSpawnRequest({ serverId: 'server-1' });
    await spawner.delete?.(identity, { withUser: false, signal: signal() });
    expect(await list('persistentvolumeclaims')).toHaveLength(1);
    await spawner.delete?.(identity, { withUser: true, signal: signal() });
    expect(await list('persistentvolumeclaims')).toEqual([]);
  });

  test('does not get a volume that is there and is not of its user', async () => {
    const claims = [{ name: 'home-{username}', mount_path: '/data' }];
    const { spawner } = await create({ claims });
    await api().request('POST', collection('persistentvolumeclaims'), {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'home-ann', labels: { 'hub/user': 'ann', 'hub/instance': 'another' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    expect(await failureOf(spawner.start(request()))).toBe(
      "The claim home-ann is there already, and is not this user's.",
    );
  });

  test('keeps its volume when it is deleted, unless that is configured', async () => {
    const { spawner } = await create({ claims: [{ name: 'home-{server}', mount_path: '/data' }] });
    await spawner.start(request());
    const identity = createSpawnRequest({ serverId: 'server-1' });
    await spawner.delete?.(identity, { withUser: true, signal: signal() });
    expect(await list('pods')).toEqual([]);
    expect(await list('persistentvolumeclaims')).toHaveLength(1);
  });

  test('that runs out of memory says at how much', async () => {
    const { spawner } = await create();
    const limits = { memoryBytes: 200 * 1024 ** 2 };
    const lines: string[] = [];
    const server = await spawner.start(request({ limits, onOutput: (line) => lines.push(line) }));
    await until(() => lines.includes('ready'), 'it runs');
    await api().killForMemory(api().namespace, podOf(server));
    expect(await server.exited).toEqual({
      code: 137,
      signal: 'SIGKILL',
      reason: 'out of memory at 200 MiB',
    });
  });

  test('that ends tells its last lines and its exit code', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const command = ['sh', '-c', 'echo this is why >&2; exit 7'];
    const server = await spawner.start(request({ command, onOutput: (line) => lines.push(line) }));
    expect(await server.exited).toEqual({ code: 7, signal: null });
    expect(lines).toEqual(['this is why']);
    expect(await spawner.poll(server.state)).toEqual({
      running: false,
      exit: { code: 7, signal: null },
    });
  });

  test('that ends under the next hub tells its last lines', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const command = [
      'sh',
      '-c',
      'trap "echo bye; exit 5" USR1; echo hello; while :; do sleep 0.1; done',
    ];
    const server = await spawner.start(request({ command, onOutput: (line) => lines.push(line) }));
    await until(() => lines.includes('hello'), 'it says hello');
    await spawner[Symbol.asyncDispose]?.();
    const next = await create();
    const last: string[] = [];
    const found = await next.spawner.restore(server.state, { onOutput: (line) => last.push(line) });
    expect(found?.url).toBe(server.url);
    process.kill((await api().pidOf(api().namespace, podOf(server))) ?? 0, 'SIGUSR1');
    expect(await found?.exited).toEqual({ code: 5, signal: null });
    expect(last.at(-1)).toBe('bye');
  });

  test('that is evicted says why', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    await api().evictPod(api().namespace, podOf(server), 'The node was low on resource: memory. ');
    expect(await server.exited).toMatchObject({
      reason: 'its node evicted it: The node was low on resource: memory',
    });
  });

  test('that is deleted by hand is noticed at once, without a question', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    const before = (await api().requests()).length;
    await api().request('DELETE', `${collection('pods')}/${podOf(server)}`, {
      gracePeriodSeconds: 1,
    });
    const exit = await server.exited;
    expect(exit?.reason).toBe('its pod was deleted');
    expect(await spawner.poll(server.state)).toMatchObject({ running: false, exit });
    const asked = (await api().requests()).slice(before);
    expect(asked.filter((each) => /^GET .*\/pods[^/]*$/.test(each))).toEqual([]);
  });

  test('is polled without a request, however many there are', async () => {
    const { spawner } = await create();
    const starts = Array.from({ length: 5 }, (_, index) =>
      spawner.start(request({ serverId: `server-${index}`, objectName: `ann-${index}` })),
    );
    const servers = await Promise.all(starts);
    const before = (await api().requests()).length;
    for (let round = 0; round < 10; round += 1) {
      for (const { state } of servers) expect(await spawner.poll(state)).toEqual({ running: true });
    }
    const asked = (await api().requests()).slice(before);
    expect(asked.filter((each) => each.includes('/pods') && !each.includes('/log'))).toEqual([]);
    const watches = (await api().requests()).filter(
      (each) => each.includes('/pods?') && each.includes('watch=true'),
    );
    expect(watches.length).toBeGreaterThan(0);
  });

  test('is watched again after a watch was cut, after the API has forgotten, and after it was away', async () => {
    const { spawner } = await create();
    const first = await spawner.start(request());
    await api().cutWatches();
    await api().request('DELETE', `${collection('pods')}/${podOf(first)}`, {
      gracePeriodSeconds: 1,
    });
    await first.exited;
    const second = await spawner.start(request());
    await api().compact();
    await api().expireWatches();
    await api().request('DELETE', `${collection('pods')}/${podOf(second)}`, {
      gracePeriodSeconds: 1,
    });
    await second.exited;
    const third = await spawner.start(request());
    await api().stopApi();
    const away = await spawner.poll(third.state);
    expect(away).toEqual({
      running: 'unknown',
      reason: expect.stringMatching(/^The Kubernetes API at https:.* does not answer: /),
    });
    await expect(spawner.stop(third.state, { graceMs: 0, signal: signal() })).rejects.toThrow(
      /does not answer/,
    );
    await api().startApi();
    await until(
      async () => (await spawner.poll(third.state)).running === true,
      'it is known again',
    );
    await spawner.stop(third.state, { graceMs: 0, signal: signal() });
  }, 60_000);

  test('ends by force when it does not end in its time', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const server = await spawner.start(
      request({ command: ignores, onOutput: (line) => lines.push(line) }),
    );
    await until(() => lines.includes('ready'), 'it ignores SIGTERM');
    await spawner.stop(server.state, { graceMs: 500, signal: signal() });
    expect(await list('pods')).toEqual([]);
  });

  test('that survives its deletion is told of, and its server does not run a second time', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    const path = `${collection('pods')}/${podOf(server)}`;
    await api().request('PATCH', path, { metadata: { finalizers: ['test/stays'] } }, mergePatch);
    const sentence = `The pod ${podOf(server)} is still there after its deletion.`;
    await Promise.all([
      expect(spawner.stop(server.state, { graceMs: 0, signal: signal() })).rejects.toThrow(
        sentence,
      ),
      expect(spawner.start(request())).rejects.toThrow(sentence),
    ]);
    expect(await list('pods')).toHaveLength(1);
    await api().request('PATCH', path, { metadata: { finalizers: null } }, mergePatch);
    await spawner.stop(server.state, { graceMs: 0, signal: signal() });
    expect(await spawner.poll(server.state)).toMatchObject({ running: false });
  }, 60_000);

  test('on a node that is lost is unknown, then ended', async () => {
    await api().addNode({ name: 'lost', labels: { place: 'far' } });
    const { spawner } = await create({ node_selector: { place: 'far' } });
    const server = await spawner.start(request());
    await api().loseNode('lost', { evictsAfterMs: 60_000 });
    await until(
      async () => (await spawner.poll(server.state)).running === 'unknown',
      'it is unknown',
    );
    expect(await spawner.poll(server.state)).toMatchObject({
      reason: 'The node lost does not answer',
    });
    await api().removeNode('lost');
    await server.exited;
    expect((await spawner.poll(server.state)).running).toBe(false);
  });

  test.for([
    ['not found', 'There is no image lab:2 in its registry.'],
    ['unauthorized', /^The image lab:2 is private, or there is none of that name/],
    [
      'wrong platform',
      'The image lab:2 does not exist for the processor architecture of the node.',
    ],
  ] as const)('is not started with an image that is %s', async ([failure, message]) => {
    await api().setImage('lab:2', { failure });
    const { spawner } = await create({ image: 'lab:2' });
    const told = await failureOf(spawner.start(request()));
    if (typeof message === 'string') expect(told).toBe(message);
    else expect(told).toMatch(message);
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('is started once a registry that was down is up', async () => {
    await api().setImage('lab:3', { failure: 'registry down' });
    const { spawner } = await create({ image: 'lab:3' });
    const messages: string[] = [];
    const onProgress = ({ message }: SpawnProgress) => void messages.push(message);
    const starting = spawner.start(request({ onProgress }));
    const hasSaid = (text: string) => messages.some((message) => message.includes(text));
    await until(() => hasSaid('The image cannot be pulled yet: '), 'it says so');
    await api().setImage('lab:3', { failure: null });
    await starting;
  });

  test.for([
    ['a missing command', { command: ['no-such-program'] }, {}, /^The server did not start: /],
    ['a user of root', {}, { run_as_user: undefined }, /it would run as root in lab:1/],
    ['a system user', { systemUser: 'ann' }, {}, 'Servers in pods know no system users.'],
    ['a socket', { socket: true }, {}, 'Servers in pods cannot listen on a Unix socket.'],
    [
      'a limit of processes',
      { limits: { processes: 5 } },
      {},
      'Kubernetes holds no limit of processes for one pod.',
    ],
    [
      'an image that is not allowed',
      { userOptions: { image: 'evil:1' } },
      {},
      'This image is not one of those that may be chosen.',
    ],
    [
      'what the restricted standard forbids',
      {},
      { pod_patch: { spec: { hostNetwork: true } } },
      /admits only pods that keep the security standard restricted.*: .*host namespaces/,
    ],
    [
      'a service account that does not exist',
      {},
      { service_account: 'nobody' },
      'The namespace has no service account nobody.',
    ],
    [
      'a namespace that does not exist',
      {},
      { namespace: 'nowhere' },
      'The cluster has no namespace nowhere.',
    ],
  ] as const)('is not started with %s, and says so', async ([, changed, options, message]) => {
    const { spawner } = await create(options);
    const told = await failureOf(spawner.start(request(changed as Partial<SpawnRequest>)));
    if (typeof message === 'string') expect(told).toBe(message);
    else expect(told).toMatch(message);
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('is refused by a quota and by admission in words that users understand', async () => {
    await api().request('POST', collection('resourcequotas'), {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'team' },
      spec: { hard: { 'limits.memory': '1Gi' } },
    });
    const { spawner } = await create();
    const limits = { memoryBytes: 2 * 1024 ** 3 };
    expect(await failureOf(spawner.start(request({ limits })))).toMatch(
      /^The quota team of the namespace is used up: limits.memory=2Gi asked for, limits.memory=0 of limits.memory=1Gi in use\.$/,
    );
    expect(await failureOf(spawner.start(request()))).toMatch(
      /^The quota team of the namespace admits only servers with limits: limits.memory/,
    );
  });

  test('whose start is given up leaves nothing', async () => {
    const { spawner } = await create({ node_selector: { disk: 'none' } });
    const cancel = new AbortController();
    const starting = spawner.start(
      request({
        signal: cancel.signal,
        onProgress: ({ phase }) => phase === 'pending' && cancel.abort(new Error('given up')),
      }),
    );
    await expect(starting).rejects.toThrow('given up');
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('whose answer was lost is not left over', async () => {
    const { spawner } = await create();
    await api().addFault({ method: 'POST', path: '/pods$', dropsAnswer: true, times: 1 });
    expect(await failureOf(spawner.start(request()))).toMatch(/does not answer/);
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('is created later when the API is busy', async () => {
    const { spawner } = await create();
    await api().addFault({ method: 'POST', status: 429, retryAfterSeconds: 1, times: 2 });
    const server = await spawner.start(request());
    expect(await spawner.poll(server.state)).toEqual({ running: true });
  });

  test('replaces what an earlier start of it left', async () => {
    const { spawner } = await create();
    const first = await spawner.start(request());
    const second = await (await create()).spawner.start(request());
    expect(uidOf(second)).not.toBe(uidOf(first));
    await first.exited;
    expect(await spawner.poll(first.state)).toMatchObject({ running: false });
    expect(await spawner.poll(second.state)).toEqual({ running: true });
  });

  test('that is left over is deleted after a while, and no other pod', async () => {
    const { spawner } = await create();
    await spawner.start(request({ serverId: 'active', objectName: 'active' }));
    await spawner.start(request({ serverId: 'stopped', objectName: 'stopped' }));
    const other = await create({}, { hubId: 'another-hub' });
    await other.spawner.start(request({ serverId: 'stopped', objectName: 'other' }));
    await spawner[Symbol.asyncDispose]?.();
    const activeServers = async () => new Set(['active']);
    const next = await create({ orphan_grace: 0 }, { activeServers });
    const namesOf = async () =>
      (await list('pods')).map(({ metadata }) => metadata.labels['hub/server-id']).toSorted();
    await until(async () => (await namesOf()).length === 2, 'one pod is deleted');
    expect(await namesOf()).toEqual(['active', 'stopped']);
    expect((await list('pods')).map(({ metadata }) => metadata.labels['hub/instance'])).toContain(
      'another-hub',
    );
    expect(next.logged.join('\n')).toContain('deleted a pod that was left over');
  }, 40_000);

  test('is not started with a configuration that leads nowhere', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hub-kubeconfig-'));
    const file = join(directory, 'config');
    await expect(create({ kubeconfig: file })).rejects.toThrow(
      `The kubeconfig ${file} cannot be read.`,
    );
    await writeFile(file, 'clusters: [}');
    await expect(create({ kubeconfig: file })).rejects.toThrow('The kubeconfig cannot be read: ');
    await expect(create({ context: 'none' })).rejects.toThrow('has no context "none"');
    await rm(directory, { recursive: true });
  });

  async function giveRole() {
    const group = 'rbac.authorization.k8s.io';
    const base = `/apis/${group}/v1/namespaces/${api().namespace}`;
    const { rules } = await documentedRole();
    const put = async (wanted: readonly Rule[]) => {
      await api().request('DELETE', `${base}/roles/hub`);
      const answer = await api().request('POST', `${base}/roles`, {
        apiVersion: `${group}/v1`,
        kind: 'Role',
        metadata: { name: 'hub' },
        rules: wanted,
      });
      expect(answer.status).toBe(201);
    };
    await put(rules);
    await api().request('POST', `${base}/rolebindings`, {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'hub' },
      roleRef: { apiGroup: group, kind: 'Role', name: 'hub' },
      subjects: [{ kind: 'ServiceAccount', name: 'hub', namespace: api().namespace }],
    });
    return {
      kubeconfigPath: await api().writeKubeconfig(api().namespace, 'hub'),
      remove: (kind: string) => put(rules.filter(({ resources }) => !resources.includes(kind))),
      async [Symbol.asyncDispose]() {
        await api().request('DELETE', `${base}/rolebindings/hub`);
        await api().request('DELETE', `${base}/roles/hub`);
      },
    };
  }
});
