import { z } from 'zod';
import type { OptionProblem } from '../../plugin/host/authenticator.ts';
import { imageChoices, imageReference } from '../images/image-options.ts';
import { isReservedLabel, type PatchKind, reservedPaths } from './pod-patch.ts';
import { parseQuantity } from './quantity.ts';

const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a DNS label: lower-case, digits, "-"');
const objectNameText = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'is not a name that Kubernetes allows');
const labelKey = z
  .string()
  .regex(
    /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/,
    'is not the name of a label',
  )
  .refine((key) => !isReservedLabel(key), 'is set by the hub');
const labelValue = z
  .string()
  .regex(/^([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?$/, 'is not the value of a label');
const labels = z.record(labelKey, labelValue);
const quantity = z
  .string()
  .refine((text) => parseQuantity(text) !== undefined, 'must be a quantity such as 10Gi');
const absolutePath = z.string().startsWith('/', 'must be an absolute path');
const id = z.int().min(0).max(2_147_483_647);

const toleration = z.strictObject({
  key: z.string().min(1).optional().describe('Key of the taint; any if left out.'),
  operator: z
    .enum(['Exists', 'Equal'])
    .optional()
    .describe('Whether the value counts; `Equal` if left out.'),
  value: z.string().optional().describe('Value of the taint.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .optional()
    .describe('Effect of the taint; any if left out.'),
  toleration_seconds: z
    .int()
    .min(0)
    .optional()
    .describe('Seconds for which a `NoExecute` taint is tolerated.'),
});

const claim = z.strictObject({
  name: z
    .string()
    .regex(
      /^(?:[a-z0-9-]{0,100})\{(?:username|server)\}(?:-[a-z0-9]{1,40})?$/,
      'must be lower-case letters, digits and "-" around {username} or {server}, such as home-{username}',
    )
    .regex(/^[a-z0-9{]/, 'must not begin with "-"')
    .describe(
      'Name of the claim. `{username}` becomes a name that no other user has, `{server}` one that no other server has.',
    ),
  mount_path: absolutePath.describe('Mount path in the server.'),
  sub_path: z
    .string()
    .regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$)).+$/, 'must be a path within the volume')
    .optional()
    .describe('Folder within the volume to mount instead of all of it.'),
  size: quantity.default('10Gi').describe('Size of a new volume, such as `10Gi`.'),
  storage_class: objectNameText
    .optional()
    .describe('StorageClass of a new volume; the default one of the cluster if left out.'),
  access_modes: z
    .array(z.enum(['ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany', 'ReadOnlyMany']))
    .min(1)
    .default(['ReadWriteOnce'])
    .describe('Access modes of a new volume.'),
});

/** JSON that is merged into the pod. */
const podPatch = z.record(z.string(), z.json()).superRefine((value, context) => {
  for (const path of reservedPaths(value)) {
    context.addIssue({ code: 'custom', path, message: 'is set by the hub' });
  }
});

/** What the configuration and a profile can both say of pods. */
const podSettings = {
  pull_policy: z
    .enum(['Always', 'IfNotPresent', 'Never'])
    .optional()
    .describe("When nodes pull the image (`imagePullPolicy`); Kubernetes' default if left out."),
  pull_secrets: z
    .array(objectNameText)
    .optional()
    .describe('Names of Secrets with credentials of registries (`imagePullSecrets`).'),
  service_account: objectNameText
    .optional()
    .describe(
      'Service account of the pods. Its token is not mounted unless the patch says otherwise.',
    ),
  priority_class: objectNameText.optional().describe('PriorityClass of the pods.'),
  node_selector: z
    .record(z.string().min(1), z.string())
    .optional()
    .describe('Labels that the node must have (`nodeSelector`).'),
  tolerations: z
    .array(toleration)
    .optional()
    .describe('Taints of nodes that the pods tolerate (`tolerations`).'),
  run_as_user: id
    .min(1)
    .optional()
    .describe(
      "User id in the container; the image's by default, which must then be numeric and not root.",
    ),
};

export const optionsSchema = z.strictObject({
  kubeconfig: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Kubeconfig file. By default KUBECONFIG, ~/.kube/config, or the service account of the pod in which the hub runs.',
    ),
  context: z
    .string()
    .min(1)
    .optional()
    .describe('Context of the kubeconfig; its current one by default.'),
  namespace: dnsLabel
    .optional()
    .describe('Namespace of the servers; that of the context, or of the hub, by default.'),
  image: imageReference.optional().describe('Image for servers whose profile names none.'),
  allowed_images: imageChoices
    .default({})
    .describe(
      'Images that users may choose from at start: a list, or an object from labels to images. No others are accepted.',
    ),
  ...podSettings,
  entrypoint: z
    .array(z.string())
    .min(1)
    .optional()
    .describe(
      "Replaces the image's ENTRYPOINT (`command`). `Spawner.cmd` becomes its arguments (`args`).",
    ),
  working_dir: absolutePath
    .optional()
    .describe('Working directory in the container; that of the image by default.'),
  name_prefix: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/, 'must be lower-case letters, digits and "-"')
    .default('hub')
    .describe('Prefix of the names of pods and Secrets.'),
  port: z
    .int()
    .min(1024)
    .max(65_535)
    .default(8888)
    .describe('Port on which servers listen in their pods; the hub connects to it directly.'),
  listen_ip: z
    .union([z.ipv4(), z.ipv6(), z.literal('{pod_ip}')])
    .default('0.0.0.0')
    .describe(
      'Address on which servers listen in their pods; `::` in an IPv6-only cluster. `{pod_ip}` is that of the pod, for pods that share the network of their node (IPv4).',
    ),
  run_as_group: id.min(1).optional().describe('Group id in the container.'),
  fs_group: id
    .min(1)
    .optional()
    .describe('Group id that owns volumes, so that servers can write to them.'),
  read_only: z
    .boolean()
    .default(false)
    .describe("Whether the container's own file system is read-only; /tmp and volumes are not."),
  gpu_resource: z
    .string()
    .regex(/^[\w.-]+\/[\w.-]+$/, 'must look like nvidia.com/gpu')
    .default('nvidia.com/gpu')
    .describe('Resource that `gpu_limit` of a profile counts.'),
  labels: labels.default({}).describe('Additional labels for pods, Secrets and claims.'),
  annotations: z
    .record(labelKey, z.string())
    .default({})
    .describe('Additional annotations for pods.'),
  claims: z
    .array(claim)
    .default([])
    .describe(
      'Volumes that the hub claims for each user or server and keeps between runs (PersistentVolumeClaim).',
    ),
  adopt_claims: z
    .boolean()
    .default(false)
    .describe(
      "Whether existing claims are taken over: those that JupyterHub's KubeSpawner made for a user of the same name, or that administrators assigned. Needs the right to patch claims.",
    ),
  delete_claims: z
    .boolean()
    .default(false)
    .describe('Whether claims are deleted with their data when their server or user is deleted.'),
  pod_patch: podPatch
    .default({})
    .describe('Merged into the pod, for settings without an option of their own.'),
  pod_patch_type: z
    .enum(['strategic', 'merge'] satisfies PatchKind[])
    .default('strategic')
    .describe(
      'How lists are merged: `strategic` by the names of their members, `merge` (RFC 7396) replaces them.',
    ),
  schedule_timeout: z
    .number()
    .positive()
    .optional()
    .describe('Seconds a start waits while no node has room for its pod; unlimited by default.'),
  pull_timeout: z
    .number()
    .positive()
    .default(1800)
    .describe(
      'Seconds that pulling an image may take, during which Spawner.start_timeout does not run.',
    ),
  orphan_grace: z
    .number()
    .min(0)
    .default(60)
    .describe(
      "Seconds after which this hub's pods without a running server are deleted; until then they can be inspected.",
    ),
  api_timeout: z
    .number()
    .positive()
    .default(30)
    .describe('Seconds the Kubernetes API has to respond.'),
});

export type KubernetesOptions = z.output<typeof optionsSchema>;
export type ClaimOptions = KubernetesOptions['claims'][number];

/** What `hub user volume` calls a claim: `home` is that of `home-{username}`. */
export const claimWordOf = (name: string): string =>
  name.replace(/\{\w+\}/, '').replaceAll(/^-+|-+$/g, '');

/** What a profile can say in its `options`. */
export const profileOptionsSchema = z.strictObject({
  image: imageReference.optional().describe('In place of KubernetesSpawner.image.'),
  allowed_images: imageChoices
    .optional()
    .describe('In place of KubernetesSpawner.allowed_images; an empty list leaves no choice.'),
  ...podSettings,
  labels: labels.optional().describe('Added to KubernetesSpawner.labels.'),
  pod_patch: podPatch.optional().describe('Merged in after that of KubernetesSpawner.pod_patch.'),
});

export type KubernetesProfileOptions = z.output<typeof profileOptionsSchema>;

/** Finds options that contradict each other. */
export function findOptionProblems({ claims }: KubernetesOptions): OptionProblem[] {
  const problems: OptionProblem[] = [];
  for (const member of ['mount_path', 'name'] as const) {
    const seen = new Set<string>();
    for (const [index, each] of claims.entries()) {
      if (seen.has(each[member])) {
        problems.push({
          option: `claims[${index}].${member}`,
          message: 'stands in another claim too',
        });
      }
      seen.add(each[member]);
    }
  }
  return problems;
}
