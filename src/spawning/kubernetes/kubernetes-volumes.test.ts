import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { canRunPods } from '../../../test/support/kubernetes-api.ts';
import { failureOf, useKubernetesSpawners } from '../../../test/support/kubernetes-spawners.ts';
import { until } from '../../../test/support/test-hub.ts';
import { testHubId } from '../../../test/support/test-spawner.ts';
import type { SpawnProgress } from '../../plugin/host/spawn-request.ts';

describe.runIf(canRunPods())('a server in a pod with claims', () => {
  const { api, create, request, collection, list, signal } = useKubernetesSpawners();

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
    const onProgress = ({ message }: SpawnProgress) => void messages.push(String(message));
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
      metadata: { name: 'home-ann', labels: { 'hub/user': 'ann', 'hub/instance': testHubId } },
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

  test('has the claim that KubeSpawner made for its user, where that is configured', async () => {
    const claims = [{ name: 'claim-{username}', mount_path: '/data' }];
    const { spawner } = await create({ claims, adopt_claims: true });
    const made = async (account: string, user: string, labels = {}) =>
      api().request('POST', collection('persistentvolumeclaims'), {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: `claim-${account}`,
          labels: { component: 'singleuser-storage', ...labels },
          annotations: { 'hub.jupyter.org/username': user },
        },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      });
    await made('ann', 'ann');
    await made('bob', 'rob');
    await made('eve', 'eve', { 'hub/instance': 'another' });
    await spawner.start(request());
    const [claim] = await list('persistentvolumeclaims');
    expect(claim.metadata).toMatchObject({
      name: 'claim-ann',
      labels: { component: 'singleuser-storage', 'hub/user': 'ann', 'hub/instance': testHubId },
      annotations: { 'hub.jupyter.org/username': 'ann' },
    });
    for (const name of ['bob', 'eve']) {
      const names = { userName: name, accountName: name, objectName: name, serverId: name };
      expect(await failureOf(spawner.start(request(names)))).toContain("is not this user's");
    }
    const without = await create({ claims });
    await made('zoe', 'zoe');
    const zoe = { userName: 'zoe', accountName: 'zoe', objectName: 'zoe', serverId: 'zoe' };
    expect(await failureOf(without.spawner.start(request(zoe)))).toContain("is not this user's");
  });

  test('has the claim that was chosen for its user, and no other one', async () => {
    const claims = [{ name: 'home-{username}', mount_path: '/data' }];
    const { spawner } = await create({ claims, adopt_claims: true, delete_claims: true });
    const givenVolumes = [{ serverName: '', volume: 'home', source: 'claim-ann---1a2b3c4d' }];
    const start = (changed: object = {}) => spawner.start(request({ givenVolumes, ...changed }));
    // To make an empty one would look as if the files were gone.
    expect(await failureOf(start())).toContain('There is no claim claim-ann---1a2b3c4d');
    await api().request('POST', collection('persistentvolumeclaims'), {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'claim-ann---1a2b3c4d' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const misnamed = [{ serverName: '', volume: 'work', source: 'claim-ann---1a2b3c4d' }];
    expect(await failureOf(start({ givenVolumes: misnamed }))).toContain('no volume "work"');
    await start();
    expect(await list('persistentvolumeclaims')).toMatchObject([
      { metadata: { name: 'claim-ann---1a2b3c4d', labels: { 'hub/user': 'ann' } } },
    ]);
    const [pod] = await list('pods');
    expect(pod).toMatchObject({
      spec: { volumes: [{ persistentVolumeClaim: { claimName: 'claim-ann---1a2b3c4d' } }] },
    });
    const bob = { userName: 'bob', accountName: 'bob', objectName: 'bob', serverId: 'bob' };
    expect(await failureOf(start(bob))).toContain("is not this user's");
    const identity = { ...createSpawnRequest({ serverId: 'server-1' }), givenVolumes };
    await spawner.delete?.(identity, { withUser: true, signal: signal() });
    expect(await list('persistentvolumeclaims')).toEqual([]);
  });

  test('keeps its volume when it is deleted, unless that is configured', async () => {
    const { spawner } = await create({ claims: [{ name: 'home-{server}', mount_path: '/data' }] });
    await spawner.start(request());
    const identity = createSpawnRequest({ serverId: 'server-1' });
    await spawner.delete?.(identity, { withUser: true, signal: signal() });
    expect(await list('pods')).toEqual([]);
    expect(await list('persistentvolumeclaims')).toHaveLength(1);
  });
});
