import { describe, expect, test } from 'vitest';
import { canRunPods, useKubernetesApi } from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';
import { until } from '../support/test-hub.ts';

describe.skipIf(!canRunPods())('pods of the small Kubernetes', () => {
  const cluster = useKubernetesApi();
  const pods = () => `/api/v1/namespaces/${cluster().namespace}/pods`;
  const podOf = async (name: string) => (await cluster().request('GET', `${pods()}/${name}`)).body;
  const logOf = async (name: string, query = '') =>
    (await cluster().request('GET', `${pods()}/${name}/log${query}`)).body;

  async function create(manifest: object): Promise<void> {
    const answer = await cluster().request('POST', pods(), manifest);
    expect(answer.body.message).toBeUndefined();
    expect(answer.status).toBe(201);
  }

  const untilPhase = (name: string, phase: string) =>
    until(async () => (await podOf(name)).status.phase === phase, `${name} is ${phase}`);

  test('a pod runs its command as a process with its environment, and completes', async () => {
    const command = ['sh', '-c', 'id -u; hostname; echo $GREETING'];
    const env = [{ name: 'GREETING', value: 'hello' }];
    await create(podManifest('completes', { command, env }));
    await untilPhase('completes', 'Succeeded');
    expect(await logOf('completes')).toBe('1000\ncompletes\nhello\n');
    const { status } = await podOf('completes');
    expect(status.containerStatuses[0].state.terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
    });
  });
});
