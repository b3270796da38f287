import { afterEach } from 'vitest';
import type { SpawnRequest } from '../../src/plugin/host/spawn-request.ts';
import type { SpawnedServer, Spawner, SpawnerHost } from '../../src/plugin/host/spawner.ts';
import { kubernetesPlugin } from '../../src/spawning/kubernetes/kubernetes-plugin.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { type KubernetesApi, useKubernetesApi } from './kubernetes-api.ts';
import { until } from './test-hub.ts';
import { createTestSpawner, type TestSpawner } from './test-spawner.ts';

export const mergePatch = 'application/merge-patch+json';
const sleeps = ['perl', '-e', '$| = 1; $SIG{TERM} = sub { exit }; print "ready\\n"; sleep 600'];

/** Kubernetes spawners in a small cluster, which is empty again after each test. */
export interface SpawnerWorld {
  api(): KubernetesApi;
  /** Creates a spawner, opened, with what it logs. */
  create(options?: object, changed?: Partial<SpawnerHost>): Promise<TestSpawner>;
  /** A start of a server that prints `ready` and waits for its end. */
  request(changed?: Partial<SpawnRequest>): SpawnRequest;
  /** Path of the objects of a kind in the API. */
  collection(kind: string): string;
  // biome-ignore lint/suspicious/noExplicitAny: the objects of the API, whose fields tests pick out.
  list(kind: string): Promise<any[]>;
  signal(): AbortSignal;
}

/** Starts a cluster for the tests of the surrounding `describe` and ends it after them. */
export function useKubernetesSpawners(): SpawnerWorld {
  const api = useKubernetesApi();
  const spawners: Spawner[] = [];
  const signal = () => AbortSignal.timeout(60_000);
  const collection = (kind: string) => `/api/v1/namespaces/${api().namespace}/${kind}`;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const list = async (kind: string): Promise<any[]> =>
    (await api().request('GET', collection(kind))).body.items;

  async function create(options: object = {}, changed: Partial<SpawnerHost> = {}) {
    const created = await createTestSpawner(
      kubernetesPlugin,
      {
        kubeconfig: api().kubeconfigPath,
        namespace: api().namespace,
        image: 'lab:1',
        run_as_user: 1000,
        listen_ip: '{pod_ip}',
        ...options,
      },
      changed,
    );
    spawners.push(created.spawner);
    await created.spawner.open?.();
    return created;
  }

  function request(changed: Partial<SpawnRequest> = {}): SpawnRequest {
    return createSpawnRequest({ command: sleeps, ...changed });
  }

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

  return { api, create, request, collection, list, signal };
}

export const podOf = ({ state }: Pick<SpawnedServer, 'state'>) => String(state['pod']);

/** What a start that must fail says. */
export const failureOf = (starting: Promise<unknown>) =>
  starting.then(
    () => 'it started',
    (error: Error) => error.message,
  );
