import { type Finding, failed, ok } from '../../plugin/host/finding.ts';
import { ApiRefusal, explainRefusal, messageOf } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';

interface ClusterParts {
  readonly cluster: Cluster;
  readonly namespace: () => Promise<string>;
  readonly options: KubernetesOptions;
}

interface Right {
  readonly verb: string;
  readonly resource: string;
  readonly subresource?: string;
}

const roleFix = 'bind the Role of docs/how-to/run-on-kubernetes.md to the account of the hub';

/** Looks at a cluster for `hub doctor`; see `Spawner.examine`. */
export async function examineCluster(
  parts: ClusterParts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const reached = await checkApi(parts, signal);
  if (reached.state === 'failed') return [reached];
  const allowed = await checkRights(parts, signal);
  if (allowed.state === 'failed') return [reached, allowed];
  return [reached, allowed, await checkNamespace(parts, signal)];
}

async function checkApi({ cluster }: ClusterParts, signal: AbortSignal): Promise<Finding> {
  const check = 'API';
  try {
    const { gitVersion } = await cluster.call<{ readonly gitVersion?: string }>('GET', '/version', {
      signal,
    });
    return ok(check, `Kubernetes ${gitVersion ?? ''} answers`);
  } catch (thrown) {
    signal.throwIfAborted();
    const fix = 'correct KubernetesSpawner.kubeconfig and context, or the network to the API';
    return failed(check, sentenceOf(thrown, 'the version'), fix);
  }
}

/** Asks for each right of the spawner (API reference, SelfSubjectAccessReview). */
async function checkRights(parts: ClusterParts, signal: AbortSignal): Promise<Finding> {
  const { cluster, options } = parts;
  const check = 'rights';
  const namespace = await parts.namespace();
  const isAllowed = async (right: Right): Promise<boolean> => {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { ...right, namespace } },
    };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const { status } = await cluster.call<{ readonly status?: { readonly allowed?: boolean } }>(
      'POST',
      path,
      { body, signal },
    );
    return status?.allowed === true;
  };
  try {
    const rights = neededRights(options);
    const answers = await Promise.all(rights.map(isAllowed));
    const missing = rights.filter((_, index) => answers[index] === false);
    if (missing.length === 0) return ok(check, `all that servers need in ${namespace}`);
    const words = missing.map(({ verb, resource, subresource }) =>
      [verb, subresource === undefined ? resource : `${resource}/${subresource}`].join(' '),
    );
    return failed(check, `missing in ${namespace}: ${words.join(', ')}`, roleFix);
  } catch (thrown) {
    signal.throwIfAborted();
    return failed(check, sentenceOf(thrown, 'to say what the hub may do'), roleFix);
  }
}

function neededRights({ claims, adopt_claims, delete_claims }: KubernetesOptions): Right[] {
  const of = (resource: string, ...verbs: readonly string[]) =>
    verbs.map((verb) => ({ verb, resource }));
  return [
    ...of('pods', 'get', 'list', 'watch', 'create', 'delete'),
    { verb: 'get', resource: 'pods', subresource: 'log' },
    ...of('events', 'list', 'watch'),
    ...of('secrets', 'create', 'patch', 'delete'),
    ...(claims.length === 0 ? [] : of('persistentvolumeclaims', 'get', 'create')),
    ...(claims.length > 0 && adopt_claims ? of('persistentvolumeclaims', 'patch') : []),
    ...(claims.length > 0 && delete_claims ? of('persistentvolumeclaims', 'delete') : []),
  ];
}

/** Creates a Secret on trial (`dryRun`): rights are given for namespaces that are not there, too. */
async function checkNamespace(parts: ClusterParts, signal: AbortSignal): Promise<Finding> {
  const namespace = await parts.namespace();
  const check = `namespace ${namespace}`;
  try {
    await parts.cluster.call('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      query: { dryRun: 'All' },
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hub-doctor' } },
      signal,
    });
    return ok(check, 'is there');
  } catch (thrown) {
    signal.throwIfAborted();
    const fix = `kubectl create namespace ${namespace}, or correct KubernetesSpawner.namespace`;
    return failed(check, sentenceOf(thrown, 'a Secret on trial'), fix);
  }
}

function sentenceOf(thrown: unknown, what: string): string {
  return String(messageOf(thrown instanceof ApiRefusal ? explainRefusal(thrown, what) : thrown));
}
