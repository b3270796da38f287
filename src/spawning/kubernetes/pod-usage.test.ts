import { describe, expect, test } from 'vitest';
import { canRunPods } from '../../../test/support/kubernetes-api.ts';
import { podOf, useKubernetesSpawners } from '../../../test/support/kubernetes-spawners.ts';
import { pathOf } from '../../../test/support/requires.ts';
import { until } from '../../../test/support/test-hub.ts';
import { testHubId } from '../../../test/support/test-spawner.ts';
import type { ResourceUsage, SpawnerState } from '../../plugin/host/spawner.ts';
import { createCluster } from './cluster.ts';
import { readPodState } from './pod-state.ts';
import { createPodUsage } from './pod-usage.ts';

describe.runIf(canRunPods())('what pods use', () => {
  const { api, create, request, signal } = useKubernetesSpawners();

  function openUsage() {
    const clock = { ms: 0 };
    const logged: string[] = [];
    const record = (_fields: object, message: string) => void logged.push(message);
    const log = { debug: record, info: record, warn: record, error: record };
    const options = { kubeconfig: api().kubeconfigPath, context: undefined, api_timeout: 10 };
    const cluster = createCluster(options, '/');
    const usage = createPodUsage(cluster, { hubId: testHubId, log, now: () => clock.ms });
    return {
      logged,
      clock,
      ask: (states: readonly SpawnerState[]) => usage(states.map(readPodState)),
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  }
  const asked = async () =>
    (await api().requests()).filter((each) => each.includes('/metrics.k8s.io/')).length;

  test('is what the metrics API says, asked once for all of them', async () => {
    const { spawner } = await create();
    await using usage = openUsage();
    const start = (serverId: string, script: string) =>
      spawner.start(
        request({ serverId, objectName: serverId, command: ['sh', '-c', `echo ready; ${script}`] }),
      );
    const burning = await start('burns', 'while :; do :; done');
    const holding = await start(
      'holds',
      `exec ${pathOf('perl')} -e '$held = "x" x 60_000_000; sleep 600'`,
    );
    const states = [burning.state, { pod: 'of no server' }, holding.state];

    const before = await asked();
    let rounds = 0;
    let used: readonly (ResourceUsage | undefined)[] = [];
    await until(async () => {
      usage.clock.ms += 10_000;
      rounds += 1;
      used = await usage.ask(states);
      return (used[0]?.cpuCores ?? 0) > 0.1 && (used[2]?.memoryBytes ?? 0) > 60e6;
    }, 'it uses a processor, and the other one memory');
    const [burns, unknown, holds] = used;
    expect(unknown).toBeUndefined();
    expect(burns?.memoryBytes).toBeLessThan(60e6);
    expect(holds?.memoryBytes).toBeLessThan(600e6);
    expect(await asked()).toBe(before + rounds);
    await usage.ask(states);
    expect(await asked()).toBe(before + rounds);
    for (const { state } of [burning, holding]) {
      await spawner.stop(state, { graceMs: 0, signal: signal() });
    }
  });

  test('is not known without a metrics server, which is said once and asked again later', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    await using usage = openUsage();
    await api().setMetrics(false);
    try {
      const before = await asked();
      for (let round = 0; round < 10; round += 1) {
        expect(await usage.ask([server.state])).toEqual([undefined]);
        usage.clock.ms += 10_000;
      }
      expect(await asked()).toBe(before + 1);
      usage.clock.ms += 300_000;
      expect(await usage.ask([server.state])).toEqual([undefined]);
      expect(usage.logged).toEqual([
        'CPU and memory of servers are not known: the cluster has no metrics server',
      ]);
    } finally {
      await api().setMetrics(true);
    }
    usage.clock.ms += 300_000;
    await until(
      async () => {
        usage.clock.ms += 10_000;
        return (await usage.ask([server.state]))[0] !== undefined;
      },
      `the pod ${podOf(server)} is measured`,
    );
  });

  test('is told of by the spawner', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    const states = [server.state];
    await until(
      async () => ((await spawner.usage?.(states))?.[0]?.memoryBytes ?? 0) > 0,
      'it is measured',
    );
  });
});
