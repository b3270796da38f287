import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  ApiException,
  CoreV1Api,
  KubeConfig,
  makeInformer,
  type V1Pod,
} from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { canRunPods, useKubernetesApi } from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';
import { pathOf, requires } from '../support/requires.ts';
import { until } from '../support/test-hub.ts';

describe.skipIf(!canRunPods())('clients of the small Kubernetes', () => {
  const cluster = useKubernetesApi();

  test('the client library reads, writes and follows pods', async () => {
    const config = new KubeConfig();
    config.loadFromFile(cluster().kubeconfigPath);
    const core = config.makeApiClient(CoreV1Api);
    const { namespace } = cluster();
    const phases = new Map<string, Set<string>>();
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () =>
      core.listNamespacedPod({ namespace }),
    );
    const record = (pod: V1Pod) => {
      const name = pod.metadata?.name ?? '';
      phases.set(name, (phases.get(name) ?? new Set()).add(pod.status?.phase ?? ''));
    };
    const gone: string[] = [];
    informer.on('add', record);
    informer.on('update', record);
    informer.on('delete', (pod) => gone.push(pod.metadata?.name ?? ''));
    await informer.start();
    const body = podManifest('by-library', {
      command: ['sh', '-c', 'echo done'],
    }) as unknown as V1Pod;
    const created = await core.createNamespacedPod({ namespace, body });
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date);
    await until(() => phases.get('by-library')?.has('Succeeded') === true, 'it has ended');
    const log = await core.readNamespacedPodLog({ namespace, name: 'by-library' });
    expect(log).toBe('done\n');
    await core.deleteNamespacedPod({ namespace, name: 'by-library' });
    await until(() => gone.includes('by-library'), 'it is gone');
    await informer.stop();

    const missing = await core
      .readNamespacedPod({ namespace, name: 'none' })
      .catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(ApiException);
    expect((missing as ApiException<string>).code).toBe(404);
  });

  test('a kubeconfig of a service account is that service account', async () => {
    const config = new KubeConfig();
    config.loadFromFile(await cluster().writeKubeconfig(cluster().namespace, 'hub'));
    const core = config.makeApiClient(CoreV1Api);
    const { namespace } = cluster();
    const refused = await core.listNamespacedPod({ namespace }).catch((error: unknown) => error);
    expect((refused as ApiException<string>).body).toMatch(/system:serviceaccount:hub-servers:hub/);
  });

  test.skipIf(!requires('kubectl'))(
    'kubectl creates, shows, describes, waits for and deletes pods',
    async () => {
      const kubectl = async (...args: string[]) => {
        const [home, file] = [cluster().directory, cluster().kubeconfigPath];
        const env = { PATH: '/usr/bin:/bin', HOME: home, KUBECONFIG: file };
        const all = ['--namespace', cluster().namespace, ...args];
        return (await promisify(execFile)(pathOf('kubectl'), all, { env })).stdout;
      };
      const file = join(cluster().directory, 'pod.json');
      const server = podManifest('by-kubectl', { command: ['sh', '-c', 'echo up; sleep 1000'] });
      await writeFile(file, JSON.stringify(server));
      expect(await kubectl('create', '--validate=false', '-f', file)).toBe(
        'pod/by-kubectl created\n',
      );
      await kubectl('wait', '--for=condition=Ready', '--timeout=30s', 'pod/by-kubectl');
      expect(await kubectl('get', 'pods')).toMatch(/by-kubectl +1\/1 +Running +0/);
      expect(await kubectl('logs', 'by-kubectl')).toBe('up\n');
      const described = await kubectl('describe', 'pod', 'by-kubectl');
      expect(described).toMatch(/Node: +node-1\/127\.0\.0\.1/);
      expect(described).toMatch(/Normal +Started .*Started container main/);
      await kubectl('label', 'pod', 'by-kubectl', 'team=red');
      expect(await kubectl('get', 'pods', '-l', 'team=red', '-o', 'name')).toBe('pod/by-kubectl\n');
      const asHub = ['--as', `system:serviceaccount:${cluster().namespace}:hub`];
      await expect(kubectl('get', 'pods', ...asHub)).rejects.toThrow(/Forbidden/);
      await kubectl('delete', 'pod', 'by-kubectl', '--grace-period=0', '--force');
      await expect(kubectl('get', 'pod', 'by-kubectl')).rejects.toThrow(/NotFound/);
    },
  );
});
