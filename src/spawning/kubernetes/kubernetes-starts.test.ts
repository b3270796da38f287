import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { canRunPods } from '../../../test/support/kubernetes-api.ts';
import { failureOf, useKubernetesSpawners } from '../../../test/support/kubernetes-spawners.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { SpawnProgress, SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { SpawnedServer } from '../../plugin/host/spawner.ts';

const uidOf = ({ state }: Pick<SpawnedServer, 'state'>) => String(state['uid']);

describe.runIf(canRunPods())('a start in a pod', () => {
  const { api, create, request, collection, list } = useKubernetesSpawners();

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
    const reported = await failureOf(spawner.start(request()));
    if (typeof message === 'string') expect(reported).toBe(message);
    else expect(reported).toMatch(message);
    expect(await list('pods')).toEqual([]);
    expect(await list('secrets')).toEqual([]);
  });

  test('is started once a registry that was down is up', async () => {
    await api().setImage('lab:3', { failure: 'registry down' });
    const { spawner } = await create({ image: 'lab:3' });
    const messages: string[] = [];
    const onProgress = ({ message }: SpawnProgress) => void messages.push(String(message));
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
    const reported = await failureOf(spawner.start(request(changed as Partial<SpawnRequest>)));
    if (typeof message === 'string') expect(reported).toBe(message);
    else expect(reported).toMatch(message);
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
    expect(next.logged.join('\n')).toContain('orphaned pod deleted');
  });

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
});
