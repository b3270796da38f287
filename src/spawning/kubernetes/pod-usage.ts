import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { text } from '../../platform/texts/text.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';
import { ApiRefusal, isMissing, messageOf } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import { hubLabels, selectorOf } from './hub-objects.ts';
import type { PodKey } from './pods.ts';
import { parseQuantity } from './quantity.ts';

/** What pods use, in their order; undefined for those of which the cluster has no figures. */
export type PodUsage = (
  pods: readonly (Pick<PodKey, 'pod' | 'namespace'> | undefined)[],
) => Promise<readonly (ResourceUsage | undefined)[]>;

/** metrics.k8s.io/v1beta1, PodMetricsList. */
interface PodMetricsList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly containers: readonly {
      readonly usage: { readonly cpu: string; readonly memory: string };
    }[];
  }[];
}

type Figures = ReadonlyMap<string, ResourceUsage>;

/** A metrics server measures every 15 seconds; asked more often, it says the same again. */
const freshMs = 9_000;
/** How long a cluster is left alone that has no figures, or does not show them. */
const refusedMs = 300_000;

/** Asks the metrics API of the cluster: once for all pods of the hub in a namespace. */
export function createPodUsage(
  cluster: Pick<Cluster, 'call'>,
  {
    hubId,
    log,
    now = () => performance.now(),
  }: { readonly hubId: string; readonly log: PluginLog; readonly now?: () => number },
): PodUsage {
  const known = new Map<string, { readonly figures: Figures; readonly untilMs: number }>();
  let isReported = false;

  async function read(namespace: string): Promise<Figures> {
    const kept = known.get(namespace);
    if (kept !== undefined && now() < kept.untilMs) return kept.figures;
    let figures: Figures = new Map();
    let forMs = freshMs;
    try {
      const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods`;
      const labelSelector = selectorOf({
        [hubLabels.managedBy]: 'hub',
        [hubLabels.instance]: hubId,
      });
      const { items } = await cluster.call<PodMetricsList>('GET', path, {
        query: { labelSelector },
      });
      figures = new Map(items.map((item) => [item.metadata.name, usageOf(item)]));
      isReported = false;
    } catch (thrown) {
      if (!(thrown instanceof ApiRefusal)) throw thrown;
      forMs = refusedMs;
      tell(thrown);
    }
    known.set(namespace, { figures, untilMs: now() + forMs });
    return figures;
  }

  function tell(refusal: ApiRefusal): void {
    if (isReported) return;
    isReported = true;
    const why = isMissing(refusal)
      ? text`the cluster has no metrics server`
      : `it refuses: ${messageOf(refusal)}`;
    log.warn({ status: refusal.statusCode }, `CPU and memory of servers are not known: ${why}`);
  }

  return async (pods) => {
    const namespaces = [...new Set(pods.flatMap((pod) => pod?.namespace ?? []))];
    const byNamespace = new Map(
      await Promise.all(namespaces.map(async (name) => [name, await read(name)] as const)),
    );
    return pods.map((pod) => pod && byNamespace.get(pod.namespace)?.get(pod.pod));
  };
}

function usageOf({ containers }: PodMetricsList['items'][number]): ResourceUsage {
  const sum = (resource: 'cpu' | 'memory') =>
    containers.reduce((total, { usage }) => total + (parseQuantity(usage[resource]) ?? 0), 0);
  return { cpuCores: sum('cpu'), memoryBytes: sum('memory') };
}
