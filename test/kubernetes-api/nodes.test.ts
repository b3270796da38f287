import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canRunPods, useKubernetesApi } from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';
import { isAlive } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

describe.skipIf(!canRunPods())('nodes and volumes of the small Kubernetes', () => {
  const cluster = useKubernetesApi({
    scheduleRetryMs: 200,
    backOffMs: 100,
    nodes: [
      { name: 'small', cpu: '2', memory: '4Gi', labels: { size: 'small' } },
      {
        name: 'gpu',
        gpus: 1,
        labels: { size: 'large' },
        taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }],
      },
    ],
  });
  const base = () => `/api/v1/namespaces/${cluster().namespace}`;
  const get = async (path: string) => (await cluster().request('GET', path)).body;
  const podOf = (name: string) => get(`${base()}/pods/${name}`);
  const command = ['sleep', '1000'];

  async function create(manifest: object, plural = 'pods'): Promise<void> {
    const answer = await cluster().request('POST', `${base()}/${plural}`, manifest);
    expect(answer.body.message).toBeUndefined();
  }

  const untilPhase = (name: string, phase: string) =>
    until(async () => (await podOf(name)).status?.phase === phase, `${name} is ${phase}`);
  const untilGone = (path: string) =>
    until(async () => (await get(path)).code === 404, `${path} is gone`);

  async function unscheduled(name: string): Promise<string> {
    const find = async () =>
      (await podOf(name)).status.conditions?.find(
        ({ type }: { type: string }) => type === 'PodScheduled',
      );
    await until(async () => (await find()) !== undefined, `${name} is looked at`);
    expect(await find()).toMatchObject({ status: 'False', reason: 'Unschedulable' });
    return (await find()).message;
  }

  test('pods go where there is room, and wait where there is none', async () => {
    const tolerations = [{ key: 'gpu', operator: 'Exists' }];
    const resources = { limits: { 'nvidia.com/gpu': '1' } };
    await create(podManifest('on-gpu', { command, resources }, { tolerations }));
    await untilPhase('on-gpu', 'Running');
    expect((await podOf('on-gpu')).spec.nodeName).toBe('gpu');

    await create(podManifest('second-gpu', { command, resources }, { tolerations }));
    expect(await unscheduled('second-gpu')).toMatch(
      /^0\/2 nodes are available: 2 Insufficient nvidia.com\/gpu\. preemption: /,
    );
    await create(podManifest('elsewhere', { command }, { nodeSelector: { size: 'huge' } }));
    expect(await unscheduled('elsewhere')).toMatch(
      /1 node\(s\) didn't match Pod's node affinity\/selector, 1 node\(s\) had untolerated taint/,
    );
    const requests = { cpu: '1500m' };
    await create(podManifest('first-half', { command, resources: { requests } }));
    await untilPhase('first-half', 'Running');
    await create(podManifest('other-half', { command, resources: { requests } }));
    expect(await unscheduled('other-half')).toMatch(/1 Insufficient cpu/);

    const query = 'fieldSelector=involvedObject.name%3Dother-half,reason%3DFailedScheduling';
    await until(async () => {
      const [event] = (await get(`${base()}/events?${query}`)).items;
      return event.series?.count > 2;
    }, 'the event is repeated');
    const [event] = (await get(`${base()}/events?${query}`)).items;
    expect(event).toMatchObject({
      type: 'Warning',
      firstTimestamp: null,
      reportingComponent: 'default-scheduler',
      eventTime: expect.any(String),
    });

    await cluster().request('DELETE', `${base()}/pods/first-half?gracePeriodSeconds=0`);
    await untilPhase('other-half', 'Running');
    await cluster().request('DELETE', `${base()}/pods/on-gpu?gracePeriodSeconds=0`);
    await untilPhase('second-gpu', 'Running');
    await cluster().addNode({ name: 'huge', labels: { size: 'huge' } });
    await untilPhase('elsewhere', 'Running');
  });

  const claim = (name: string, storageClassName?: string) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
    },
  });
  const claimPath = (name: string) => `${base()}/persistentvolumeclaims/${name}`;
  const withHome = (name: string, claimName: string, script: string) =>
    podManifest(
      name,
      {
        command: ['sh', '-c', script],
        workingDir: '/home/jovyan',
        volumeMounts: [{ name: 'home', mountPath: '/home/jovyan' }],
      },
      { volumes: [{ name: 'home', persistentVolumeClaim: { claimName } }] },
    );

  test('a claim is bound to a folder that outlives pods, and goes with the claim', async () => {
    await create(claim('home'), 'persistentvolumeclaims');
    await create(withHome('writes', 'home', 'pwd; echo kept > file'));
    await untilPhase('writes', 'Succeeded');
    await create(withHome('reads', 'home', 'cat file'));
    await untilPhase('reads', 'Succeeded');
    expect((await cluster().request('GET', `${base()}/pods/reads/log`)).body).toBe('kept\n');
    expect(existsSync('/home/jovyan')).toBe(false);

    const { spec, status } = await get(claimPath('home'));
    expect(status).toMatchObject({ phase: 'Bound', capacity: { storage: '1Gi' } });
    const volume = await get(`/api/v1/persistentvolumes/${spec.volumeName}`);
    const file = `${volume.spec.hostPath.path}/file`;
    expect(readFileSync(file, 'utf8')).toBe('kept\n');

    await create(withHome('uses', 'home', 'sleep 1000'));
    await untilPhase('uses', 'Running');
    await cluster().request('DELETE', claimPath('home'));
    expect((await get(claimPath('home'))).metadata.deletionTimestamp).toBeDefined();
    await cluster().request('DELETE', `${base()}/pods/uses?gracePeriodSeconds=0`);
    await untilGone(claimPath('home'));
    expect(existsSync(file)).toBe(false);
  });

  test('a claim that is not bound holds its pod', async () => {
    await cluster().setStorage('standard', { failure: 'no space left' });
    await create(claim('full'), 'persistentvolumeclaims');
    await create(withHome('homeless', 'full', 'true'));
    expect(await unscheduled('homeless')).toMatch(
      /pod has unbound immediate PersistentVolumeClaims/,
    );
    const query = 'fieldSelector=involvedObject.name%3Dfull,reason%3DProvisioningFailed';
    expect((await get(`${base()}/events?${query}`)).items[0].message).toMatch(/no space left/);
    await cluster().setStorage('standard', { failure: null, bindMs: 100 });
    await untilPhase('homeless', 'Succeeded');

    await create(claim('late', 'with-pod'), 'persistentvolumeclaims');
    expect((await get(claimPath('late'))).status.phase).toBe('Pending');
    await create(withHome('consumer', 'late', 'true'));
    await untilPhase('consumer', 'Succeeded');
  });

  test('a lost node keeps its pods in doubt until it is back', async () => {
    await cluster().addNode({ name: 'shaky', labels: { place: 'shaky' } });
    const nodeSelector = { place: 'shaky' };
    await create(podManifest('adrift', { command }, { nodeSelector }));
    await untilPhase('adrift', 'Running');
    const pid = (await cluster().pidOf(cluster().namespace, 'adrift')) ?? 0;
    await cluster().loseNode('shaky', { evictsAfterMs: 300 });
    const node = await get('/api/v1/nodes/shaky');
    expect(node.status.conditions[0]).toMatchObject({ type: 'Ready', status: 'Unknown' });
    expect((await podOf('adrift')).status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'False' }),
    );
    await until(
      async () => (await podOf('adrift')).metadata.deletionTimestamp !== undefined,
      'it is to go',
    );
    expect((await podOf('adrift')).status).toMatchObject({ phase: 'Running', reason: 'NodeLost' });
    expect(isAlive(pid)).toBe(true);
    await cluster().returnNode('shaky');
    await untilGone(`${base()}/pods/adrift`);
    expect(isAlive(pid)).toBe(false);

    await create(podManifest('patient', { command }, { nodeSelector }));
    await untilPhase('patient', 'Running');
    const readyOf = async () =>
      (await podOf('patient')).status.conditions.find(
        ({ type }: { type: string }) => type === 'Ready',
      ).status;
    await until(async () => (await readyOf()) === 'True', 'it is ready');
    await cluster().loseNode('shaky');
    expect(await readyOf()).toBe('False');
    await cluster().returnNode('shaky');
    expect(await readyOf()).toBe('True');

    await create(podManifest('doomed', { command }, { nodeSelector }));
    await untilPhase('doomed', 'Running');
    await cluster().removeNode('shaky');
    await untilGone(`${base()}/pods/doomed`);
  });
});
