import { HubError } from '../../platform/errors.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { text } from '../../platform/texts/text.ts';
import { systemClock } from '../processes/clock.ts';
import { ApiRefusal, alreadyExists, explainRefusal, isMissing, messageOf } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import { hubLabels, secretNameOf, selectorOf, serverLabelOf } from './hub-objects.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';
import { type PodParts, podRequest } from './pod-request.ts';
import type { WirePod } from './pod-view.ts';
import type { PodKey, Pods } from './pods.ts';

/** Creates and ends the pods of servers, with the Secrets that belong to them. */
export interface ServerPods {
  /** Creates Secret and pod; when that fails, nothing is left of them. */
  create(parts: Omit<PodParts, 'namespace' | 'hubId'>): Promise<WirePod>;
  /** Ends a pod and what runs in it. Rejects when it is still there after that; idempotent. */
  end(key: PodKey, options: EndOptions): Promise<void>;
  /** Ends all pods of a server, and deletes its Secret; idempotent. */
  endAll(serverId: string, options: EndOptions): Promise<void>;
  removeSecret(serverId: string): Promise<void>;
}

export interface EndOptions {
  readonly graceMs: number;
  readonly signal?: AbortSignal;
}

/** How long a node has for the end of a pod after its grace period. */
const killMs = 10_000;
/** How long the API has for a forced deletion. */
const forceMs = 5_000;
const askMs = 2_000;

export function createServerPods(
  {
    cluster,
    pods,
    log,
  }: { readonly cluster: Cluster; readonly pods: Pods; readonly log: PluginLog },
  {
    options,
    hubId,
    namespace,
  }: {
    readonly options: KubernetesOptions;
    readonly hubId: string;
    readonly namespace: () => Promise<string>;
  },
): ServerPods {
  const collection = async (kind: 'pods' | 'secrets') =>
    `/api/v1/namespaces/${await namespace()}/${kind}`;

  async function listOf(serverId: string, signal?: AbortSignal): Promise<readonly WirePod[]> {
    const labelSelector = selectorOf({
      [hubLabels.instance]: hubId,
      [hubLabels.serverId]: serverLabelOf(serverId),
    });
    const { items } = await cluster.call<{ items: readonly WirePod[] | null }>(
      'GET',
      await collection('pods'),
      { query: { labelSelector }, signal },
    );
    return items ?? [];
  }

  /** Resolves to false when the pod is gone already. */
  async function requestDeletion(
    { namespace: where, pod, uid }: PodKey,
    graceSeconds: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: graceSeconds,
      preconditions: { uid },
    };
    try {
      await cluster.call('DELETE', `/api/v1/namespaces/${where}/pods/${pod}`, { body, signal });
    } catch (thrown) {
      // 409: another pod has the name by now.
      if (isMissing(thrown) || (thrown instanceof ApiRefusal && thrown.statusCode === 409)) {
        pods.drop(uid);
        return false;
      }
      throw thrown instanceof ApiRefusal ? explainRefusal(thrown, text`to delete the pod`) : thrown;
    }
    return true;
  }

  /** Whether a pod is gone before the time is over. Rejects when the API did not tell. */
  async function isGoneWithin(key: PodKey, ms: number, signal?: AbortSignal): Promise<boolean> {
    const deadlineMs = systemClock.monotonicMs() + ms;
    for (;;) {
      signal?.throwIfAborted();
      const leftMs = deadlineMs - systemClock.monotonicMs();
      const changed = pods.next(key.uid, {
        ms: Math.max(0, Math.min(leftMs, askMs)),
        ...(signal === undefined ? {} : { signal }),
      });
      const condition = await pods.find(key);
      if (condition.is === 'gone') return true;
      if (leftMs <= 0) {
        if (condition.is === 'unknown') throw new HubError('unavailable', condition.reason);
        return false;
      }
      await changed;
    }
  }

  async function end(key: PodKey, { graceMs, signal }: EndOptions): Promise<void> {
    // 0 would take the pod out of the API before its node has ended it.
    const graceSeconds = Math.max(1, Math.ceil(graceMs / 1000));
    if (!(await requestDeletion(key, graceSeconds, signal))) return;
    if (await isGoneWithin(key, graceSeconds * 1000 + killMs, signal)) return;
    log.warn({ pod: key.pod }, 'pod exceeded its grace period, deleting it by force');
    if (!(await requestDeletion(key, 0, signal))) return;
    if (await isGoneWithin(key, forceMs, signal)) return;
    throw new HubError(
      'upstream_failed',
      text`The pod ${key.pod} is still there after its deletion.`,
      {
        hint: text`The administrator must look at its finalizers and its node (kubectl describe pod).`,
      },
    );
  }

  async function removeSecret(serverId: string): Promise<void> {
    const name = secretNameOf(options.name_prefix, hubId, serverId);
    try {
      await cluster.call('DELETE', `${await collection('secrets')}/${name}`);
    } catch (thrown) {
      if (isMissing(thrown)) return;
      throw thrown instanceof ApiRefusal
        ? explainRefusal(thrown, text`to delete a Secret`)
        : thrown;
    }
  }

  async function post<Result>(
    kind: 'pods' | 'secrets',
    body: unknown,
    signal: AbortSignal,
  ): Promise<Result> {
    try {
      return await cluster.call<Result>('POST', await collection(kind), { body, signal });
    } catch (thrown) {
      if (!(thrown instanceof ApiRefusal)) throw thrown;
      throw explainRefusal(thrown, kind === 'pods' ? text`the pod` : text`the Secret`);
    }
  }

  return {
    end,
    removeSecret,

    async endAll(serverId, endOptions) {
      const found = await listOf(serverId, endOptions.signal);
      await Promise.all(found.map((pod) => end(keyOf(pod), endOptions)));
      await removeSecret(serverId);
    },

    async create({ request, image, ...rest }) {
      const { signal, serverId } = request;
      const where = await namespace();
      const { pod, secret } = podRequest({ ...rest, request, image, hubId, namespace: where });
      // What an earlier start left, and could not be deleted then.
      const former = await listOf(serverId, signal);
      await Promise.all(former.map((each) => end(keyOf(each), { graceMs: 0, signal })));
      await removeSecret(serverId);
      try {
        await post('secrets', secret, signal);
        const created = await post<WirePod>('pods', pod, signal);
        pods.take(created);
        const { name, uid } = created.metadata;
        const owner = { apiVersion: 'v1', kind: 'Pod', name, uid };
        const path = `${await collection('secrets')}/${secret.metadata?.name ?? ''}`;
        const body = { metadata: { ownerReferences: [owner] } };
        await cluster.call('PATCH', path, { body, signal });
        return created;
      } catch (thrown) {
        // Whether it was made is not certain when the answer did not come.
        const leftovers = await listOf(serverId).catch(() => []);
        await Promise.all(leftovers.map((each) => end(keyOf(each), { graceMs: 0 })))
          .then(() => removeSecret(serverId))
          .catch((error: unknown) =>
            log.warn({ serverId, reason: messageOf(error) }, 'pod left for later deletion'),
          );
        throw thrown instanceof ApiRefusal && !alreadyExists(thrown)
          ? explainRefusal(thrown, text`the Secret`)
          : thrown;
      }
    },
  };
}

export function keyOf({ metadata }: Pick<WirePod, 'metadata'>): PodKey {
  return { pod: metadata.name, namespace: metadata.namespace ?? '', uid: metadata.uid };
}
