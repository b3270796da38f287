import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { canRunPods } from '../../../test/support/kubernetes-api.ts';
import {
  failureOf,
  mergePatch,
  podOf,
  useKubernetesSpawners,
} from '../../../test/support/kubernetes-spawners.ts';
import { until } from '../../../test/support/test-hub.ts';
import { testHubId } from '../../../test/support/test-spawner.ts';
import type { SpawnProgress } from '../../plugin/host/spawn-request.ts';

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

const ignores = ['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 0.2; done'];

describe.runIf(canRunPods())('a server in a pod', () => {
  const { api, create, request, collection, list, signal } = useKubernetesSpawners();

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
      'hub/instance': testHubId,
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

  test.for(['ended', 'moved'])('a pod that has %s gets no more visitors at once', async (what) => {
    const before = await create();
    const { state } = await before.spawner.start(request());
    const { spawner, logged } = await create({ api_timeout: 1 });
    const server = await spawner.restore?.(state, { onOutput: () => undefined });
    // Its last lines do not come, and its address may be that of another pod meanwhile.
    await api().addFault({ path: '/log', delayMs: 600_000 });
    const pod = podOf({ state });
    if (what === 'ended') await api().killForMemory(api().namespace, pod);
    else {
      const status = { podIP: '127.9.9.9', podIPs: [{ ip: '127.9.9.9' }] };
      await api().request('PATCH', `${collection('pods')}/${pod}/status`, { status }, mergePatch);
    }
    await server?.ended;
    expect(logged).toEqual([]);
    await server?.exited;
    expect(logged.join()).toContain('pod output cannot be read');
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
    expect((await examine({ delete_claims: true, adopt_claims: true }))?.[1]).toEqual({
      check: 'rights',
      state: 'failed',
      detail:
        'missing in hub-servers: get persistentvolumeclaims, create persistentvolumeclaims, patch persistentvolumeclaims, delete persistentvolumeclaims',
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
    const hasSaid = (text: string) => events.some(({ message }) => String(message).includes(text));
    await until(() => hasSaid('Waiting for a node with room'), 'it waits for a node');
    expect(events.at(-1)).toMatchObject({ phase: 'pending', reason: expect.any(String) });
    await api().addNode({ name: 'with-ssd', labels: { disk: 'ssd' } });
    await starting;
    await api().removeNode('with-ssd');
    const messages = events.map(({ message }) => String(message));
    expect(messages).toContain('Pulling the image slow:1.');
    expect(events.find(({ message }) => String(message).startsWith('Pulling'))?.phase).toBe(
      'pulling',
    );
    expect(messages.at(-1)).toBe('The server is started.');
  });

  test('does not wait longer for a node than is configured', async () => {
    const { spawner } = await create({ node_selector: { disk: 'none' }, schedule_timeout: 0.5 });
    expect(await failureOf(spawner.start(request()))).toMatch(
      /^The server did not start within 0.5 seconds\. Waiting for a node with room: /,
    );
    expect(await list('pods')).toEqual([]);
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
    expect(exit?.reason).toEqual('its pod was deleted');
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
    expect(away.running).toBe('unknown');
    expect('reason' in away && String(away.reason)).toMatch(
      /^The Kubernetes API at https:.* does not answer: /,
    );
    await expect(spawner.stop(third.state, { graceMs: 0, signal: signal() })).rejects.toThrow(
      /does not answer/,
    );
    await api().startApi();
    await until(
      async () => (await spawner.poll(third.state)).running === true,
      'it is known again',
    );
    await spawner.stop(third.state, { graceMs: 0, signal: signal() });
  });

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
  });

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
