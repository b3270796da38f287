import type {
  V1Container,
  V1EnvVar,
  V1Pod,
  V1Secret,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';
import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnRequest, Volume } from '../../plugin/host/spawn-request.ts';
import { environmentInImage } from '../images/image-environment.ts';
import { fillGuardedCommand } from '../processes/singleuser-program.ts';
import { claimNameOf } from './claims.ts';
import { identityAnnotations, podNameOf, secretNameOf, serverLabels } from './hub-objects.ts';
import type { KubernetesOptions, KubernetesProfileOptions } from './kubernetes-options.ts';
import { applyPatch, serverContainer } from './pod-patch.ts';

export type KubernetesRequest = SpawnRequest<KubernetesProfileOptions>;

export interface PodParts {
  readonly request: KubernetesRequest;
  readonly options: KubernetesOptions;
  readonly hubId: string;
  readonly namespace: string;
  readonly image: string;
}

/** The pod of a server, and the Secret with its whole environment, tokens included. */
export function podRequest(parts: PodParts): { readonly pod: V1Pod; readonly secret: V1Secret } {
  const { request, options, hubId, namespace } = parts;
  const { profileOptions } = request;
  const metadata = {
    namespace,
    labels: {
      ...options.labels,
      ...profileOptions.labels,
      ...serverLabels(hubId, request),
    },
  };
  const annotations = { ...options.annotations, ...identityAnnotations(request) };
  const secret: V1Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...metadata,
      name: secretNameOf(options.name_prefix, hubId, request.serverId),
      annotations: identityAnnotations(request),
    },
    type: 'Opaque',
    data: environmentData(parts),
  };
  const base: V1Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: podNameOf(options.name_prefix, hubId, request), annotations },
    spec: podSpec(parts, secret.metadata?.name ?? ''),
  };
  const kind = options.pod_patch_type;
  const patched = [options.pod_patch, profileOptions.pod_patch ?? {}].reduce(
    (pod, patch) => applyPatch(pod, patch, kind),
    base as Readonly<Record<string, unknown>>,
  ) as V1Pod;
  requireServer(patched);
  return { pod: patched, secret };
}

/** A merge patch (RFC 7396) replaces the list of containers. */
function requireServer({ spec }: V1Pod): void {
  const server = spec?.containers?.find(({ name }) => name === serverContainer);
  if (server?.image !== undefined && server.envFrom !== undefined) return;
  throw new HubError('internal', text`The patch of the pod removes the container of the server.`, {
    hint: text`The administrator must correct KubernetesSpawner.pod_patch, or its type: strategic merges containers by name.`,
  });
}

const keyOfSecret = /^[-._a-zA-Z0-9]+$/;

/** The whole environment but for the address, base64 as a Secret has it. */
function environmentData({ request }: PodParts): Record<string, string> {
  return Object.fromEntries(
    environmentInImage(request.environment).map(([name, value]) => {
      if (!keyOfSecret.test(name)) {
        throw new HubError(
          'internal',
          text`No pod can have a variable named ${JSON.stringify(name)}.`,
          { hint: text`The administrator must correct Spawner.environment.` },
        );
      }
      return [name, Buffer.from(value).toString('base64')];
    }),
  );
}

/** The address of a pod is known to the pod alone when it starts (downward API). */
const podIp = 'HUB_POD_IP';
/** Stands for it until the node fills it in; a host name that nothing has (RFC 6761 §6.4). */
const podIpPlaceholder = 'pod-ip.invalid';

function listenIp({ listen_ip }: KubernetesOptions): string {
  return listen_ip === '{pod_ip}' ? podIpPlaceholder : listen_ip;
}

function withPodIp(word: string): string {
  return literal(word).replaceAll(podIpPlaceholder, `$(${podIp})`);
}

/** Variables with the address: nothing secret. They follow the one that they refer to. */
function addressVariables({ request, options }: PodParts): V1EnvVar[] {
  const ip = listenIp(options);
  const url = `http://${ip.includes(':') ? `[${ip}]` : ip}:${options.port}`;
  return [
    ...(options.listen_ip === '{pod_ip}'
      ? [{ name: podIp, valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }]
      : []),
    ...Object.entries(request.environmentForUrl(url)).map(([name, value]) => ({
      name,
      value: withPodIp(value),
    })),
  ];
}

function podSpec(parts: PodParts, secretName: string): V1Pod['spec'] & object {
  const { request, options, image } = parts;
  const chosen = { ...options, ...definedOf(request.profileOptions) };
  const { service_account, priority_class, node_selector, tolerations, pull_secrets } = chosen;
  const { volumes, mounts } = storageOf(request, options);
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    // Variables about each Service of the namespace would be in the way of the server's own.
    enableServiceLinks: false,
    terminationGracePeriodSeconds: Math.ceil(request.stopGraceMs / 1000),
    ...(service_account === undefined ? {} : { serviceAccountName: service_account }),
    ...(priority_class === undefined ? {} : { priorityClassName: priority_class }),
    ...(node_selector === undefined ? {} : { nodeSelector: { ...node_selector } }),
    ...(tolerations === undefined
      ? {}
      : {
          tolerations: tolerations.map(({ toleration_seconds: seconds, ...each }) => ({
            ...(each as Record<string, string>),
            ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
          })),
        }),
    ...(pull_secrets === undefined
      ? {}
      : { imagePullSecrets: pull_secrets.map((name) => ({ name })) }),
    securityContext: {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
      ...(chosen.run_as_user === undefined ? {} : { runAsUser: chosen.run_as_user }),
      ...(options.run_as_group === undefined ? {} : { runAsGroup: options.run_as_group }),
      ...(options.fs_group === undefined
        ? {}
        : { fsGroup: options.fs_group, fsGroupChangePolicy: 'OnRootMismatch' }),
    },
    containers: [
      {
        name: serverContainer,
        image,
        ...(chosen.pull_policy === undefined ? {} : { imagePullPolicy: chosen.pull_policy }),
        ...commandOf(request, options),
        ...(options.working_dir === undefined ? {} : { workingDir: options.working_dir }),
        ports: [{ name: 'http', containerPort: options.port, protocol: 'TCP' }],
        envFrom: [{ secretRef: { name: secretName } }],
        env: addressVariables(parts),
        resources: resourcesOf(request, options),
        securityContext: {
          allowPrivilegeEscalation: false,
          privileged: false,
          capabilities: { drop: ['ALL'] },
          readOnlyRootFilesystem: options.read_only,
        },
        volumeMounts: mounts,
      },
    ],
    volumes,
  };
}

function definedOf(profile: KubernetesProfileOptions): Partial<KubernetesProfileOptions> {
  return Object.fromEntries(
    Object.entries(profile).filter(
      ([name, value]) => value !== undefined && !['labels', 'pod_patch'].includes(name),
    ),
  );
}

/** Kubernetes replaces `$(NAME)` in commands, and takes `$$` for `$`: the words are meant as they are. */
function literal(word: string): string {
  return word.replaceAll('$', '$$$$');
}

function commandOf(
  { command }: KubernetesRequest,
  options: KubernetesOptions,
): Pick<V1Container, 'command' | 'args'> {
  const args = fillGuardedCommand(command, (text) =>
    text.replaceAll('{ip}', listenIp(options)).replaceAll('{port}', String(options.port)),
  );
  return {
    ...(options.entrypoint === undefined ? {} : { command: options.entrypoint.map(literal) }),
    ...(args.length === 0 ? {} : { args: args.map(withPodIp) }),
  };
}

function resourcesOf(
  { limits, guarantees }: KubernetesRequest,
  { gpu_resource }: KubernetesOptions,
): NonNullable<V1Container['resources']> {
  const amounts = ({ memoryBytes, cpuCores }: typeof guarantees): Record<string, string> => ({
    ...(memoryBytes === undefined ? {} : { memory: String(Math.ceil(memoryBytes)) }),
    ...(cpuCores === undefined ? {} : { cpu: `${Math.ceil(cpuCores * 1000)}m` }),
  });
  const gpus =
    limits.gpus === undefined || limits.gpus === 0 ? {} : { [gpu_resource]: String(limits.gpus) };
  return { limits: { ...amounts(limits), ...gpus }, requests: { ...amounts(guarantees), ...gpus } };
}

interface Storage {
  readonly volumes: V1Volume[];
  readonly mounts: V1VolumeMount[];
}

function storageOf(request: KubernetesRequest, options: KubernetesOptions): Storage {
  const volumes = new Map<string, V1Volume>();
  const mounts: V1VolumeMount[] = [];
  const volumeOf = (claimName: string): string => {
    const found = volumes.get(claimName);
    const name = found?.name ?? `claim-${volumes.size}`;
    volumes.set(claimName, { name, persistentVolumeClaim: { claimName } });
    return name;
  };
  for (const claim of options.claims) {
    mounts.push({
      name: volumeOf(claimNameOf(claim, request)),
      mountPath: claim.mount_path,
      ...(claim.sub_path === undefined ? {} : { subPath: claim.sub_path }),
    });
  }
  for (const volume of request.volumes) {
    requireClaim(volume);
    const { source, subPath, target, readOnly } = volume;
    mounts.push({
      name: volumeOf(source),
      mountPath: target,
      readOnly,
      ...(subPath !== undefined && { subPath }),
    });
  }
  const result = { volumes: [...volumes.values()], mounts };
  if (options.read_only) {
    result.volumes.push({ name: 'tmp', emptyDir: {} });
    result.mounts.push({ name: 'tmp', mountPath: '/tmp' });
  }
  return result;
}

function requireClaim({ source, target }: Volume): void {
  const refuse = (problem: Text) =>
    new HubError('internal', text`The volume ${source} cannot be mounted: ${problem}.`, {
      hint: text`The administrator must correct the volumes of servers.`,
    });
  if (source.startsWith('/')) {
    throw refuse(text`folders of nodes are not mounted; name a claim that exists in the namespace`);
  }
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(source)) {
    throw refuse(text`this cannot be the name of a claim`);
  }
  const segments = target.split('/');
  if (
    !target.startsWith('/') ||
    target === '/' ||
    segments.includes('..') ||
    target.includes(':')
  ) {
    throw refuse(text`its target must be an absolute path below /`);
  }
}
