import { z } from 'zod';
import type { OptionProblem } from '../../plugin/host/authenticator.ts';
import { imageReference, imageChoices as images } from '../images/image-options.ts';
import { isLocalEngine, parseEngineAddress } from './engine-address.ts';

const networkName = z
  .string()
  .regex(/^[a-zA-Z0-9][\w.-]*$/, 'is not the name of a network')
  .refine((name) => name !== 'none', 'would leave servers without a network');

const pullPolicy = z.enum(['missing', 'always', 'never']);
const gpus = z.union([z.literal('all'), z.int().positive()]);

/** JSON that is merged into the request that creates a container (Docker Engine API, ContainerCreate). */
const createOptions = z.record(z.string(), z.json()).superRefine((value, context) => {
  for (const path of reservedPaths(value)) {
    context.addIssue({ code: 'custom', path, message: 'is set by the hub' });
  }
});

/** The options of the Docker spawner, as they stand in the configuration. */
export const optionsSchema = z.strictObject({
  host: z
    .string()
    .refine((text) => parseEngineAddress(text) !== undefined, {
      error: 'must look like unix:///var/run/docker.sock or tcp://engine.example.org:2376',
    })
    .optional()
    .describe(
      'Socket or address of the Docker or Podman engine; DOCKER_HOST by default, else unix:///var/run/docker.sock.',
    ),
  tls_ca: z
    .string()
    .min(1)
    .optional()
    .describe("CA file (PEM) that a remote engine's certificate is verified with."),
  tls_cert: z.string().min(1).optional().describe("File (PEM) with the hub's client certificate."),
  tls_key: z.string().min(1).optional().describe('File (PEM) with the key of that certificate.'),
  image: imageReference.optional().describe('Image for servers whose profile names none.'),
  allowed_images: images
    .default({})
    .describe(
      'Images that users may choose from at start: a list, or an object from labels to images. No others are accepted.',
    ),
  pull_policy: pullPolicy
    .default('missing')
    .describe('When an image is pulled: when it is missing, before every start, or never.'),
  pull_ahead: z
    .boolean()
    .default(false)
    .describe(
      'Whether the images of all profiles, and those that users may choose, are pulled when the hub starts, so that no server has to wait for one.',
    ),
  registry: z
    .string()
    .min(1)
    .optional()
    .describe('Registry that requires a login, such as registry.example.org:5000.'),
  registry_username: z.string().min(1).optional().describe('User name at that registry.'),
  registry_password: z.string().min(1).optional().describe('Password or token of that account.'),
  name_prefix: z
    .string()
    .regex(/^[a-zA-Z0-9][\w.-]{0,40}$/, 'must consist of letters, digits, ".", "_" and "-"')
    .default('hub')
    .describe('Prefix of container names.'),
  network: networkName
    .default('bridge')
    .describe(
      "Network of the containers. With host they share the network of the engine's machine, which must be the hub's.",
    ),
  use_internal_ip: z
    .boolean()
    .default(false)
    .describe(
      "Whether the hub connects to the container's own address instead of a published port: for a hub on the same network.",
    ),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .default(8888)
    .describe(
      'Port on which servers listen in their containers; with network host each gets its own.',
    ),
  host_ip: z
    .ipv4()
    .default('127.0.0.1')
    .describe("Address of the engine's machine on which ports are published."),
  connect_host: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Where the hub reaches published ports; by default the host of the engine, or host_ip.',
    ),
  user: z
    .string()
    .regex(/^[\w.-]+(:[\w.-]+)?$/, 'must look like 1000:1000')
    .optional()
    .describe('User and group in the container; those of the image by default.'),
  allow_root: z
    .boolean()
    .default(false)
    .describe('Whether servers may run as root of their container.'),
  cap_drop: z.array(z.string().min(1)).default(['ALL']).describe('Capabilities to drop.'),
  cap_add: z.array(z.string().min(1)).default([]).describe('Capabilities to add.'),
  no_new_privileges: z
    .boolean()
    .default(true)
    .describe('Whether programs such as sudo are prevented from gaining privileges.'),
  read_only: z
    .boolean()
    .default(false)
    .describe("Whether the container's own file system is read-only; volumes are not."),
  gpus: gpus.optional().describe('GPUs of servers whose profile sets none.'),
  pids_limit: z
    .int()
    .positive()
    .default(4096)
    .describe('Maximum processes and threads of servers whose profile sets none.'),
  init: z
    .boolean()
    .default(false)
    .describe(
      'Whether a small init process runs first in the container, to forward signals and reap zombies.',
    ),
  working_dir: z
    .string()
    .startsWith('/', 'must be absolute')
    .optional()
    .describe('Working directory in the container; that of the image by default.'),
  labels: z.record(z.string().min(1), z.string()).default({}).describe('Additional labels.'),
  remove: z
    .boolean()
    .default(true)
    .describe(
      'Whether the container is removed when its server stops. If kept, it can be inspected until the next start.',
    ),
  delete_volumes: z
    .boolean()
    .default(false)
    .describe(
      'Whether named volumes created by the hub are deleted with their data: those with {username} in their source when the user is deleted, those with {server} as well when the server is.',
    ),
  create_options: createOptions
    .default({})
    .describe(
      'Merged into the request that creates a container (ContainerCreate of the Docker Engine API): objects are merged, lists joined, the rest replaced.',
    ),
  api_timeout: z
    .number()
    .positive()
    .default(30)
    .describe('Seconds the engine has to respond; pulling an image may take longer.'),
});

export type DockerOptions = z.output<typeof optionsSchema>;

/** What a profile can say in its `options`. */
export const profileOptionsSchema = z.strictObject({
  image: imageReference.optional().describe('In place of DockerSpawner.image.'),
  allowed_images: images
    .optional()
    .describe('In place of DockerSpawner.allowed_images; an empty list leaves no choice.'),
  pull_policy: pullPolicy.optional().describe('In place of DockerSpawner.pull_policy.'),
  network: networkName.optional().describe('In place of DockerSpawner.network.'),
  user: optionsSchema.shape.user.describe('In place of DockerSpawner.user.'),
  create_options: createOptions
    .optional()
    .describe('Merged in after those of DockerSpawner.create_options.'),
});

export type DockerProfileOptions = z.output<typeof profileOptionsSchema>;

/** Finds options that contradict each other or cannot work with the engine. */
export function findOptionProblems(options: DockerOptions): OptionProblem[] {
  const problems: OptionProblem[] = [];
  const report = (option: string, message: string) => problems.push({ option, message });
  const { tls_ca, tls_cert, tls_key, host, network } = options;
  const isLocal = host === undefined || isLocalEngine(host);

  if ((tls_cert === undefined) !== (tls_key === undefined)) {
    report(
      tls_cert === undefined ? 'tls_cert' : 'tls_key',
      'is missing: certificate and key go together',
    );
  }
  const hasTls = [tls_ca, tls_cert, tls_key].some((file) => file !== undefined);
  if (hasTls && isLocal) report('host', 'must be the tcp:// address for which the TLS files are');
  if (!isLocal && network === 'host') {
    report(
      'network',
      'cannot be host with an engine on another machine: no free port is known there',
    );
  }
  if (!isLocal && !options.use_internal_ip && options.host_ip.startsWith('127.')) {
    report('host_ip', 'must be an address of the remote engine that the hub reaches');
  }
  const account = [options.registry, options.registry_username, options.registry_password];
  if (account.some((each) => each === undefined) && account.some((each) => each !== undefined)) {
    report('registry', 'needs registry, registry_username and registry_password together');
  }
  return problems;
}

const reservedAtTop = ['name', 'Image', 'Env', 'Tty', 'OpenStdin', 'AttachStdin', 'ExposedPorts'];
const reservedInHostConfig = ['AutoRemove', 'RestartPolicy', 'NetworkMode', 'PortBindings'];
const reservedLabel = /^hub\./;

/** Paths of what an operator must not set, because the hub could not find or reach its servers any more. */
function reservedPaths(value: Readonly<Record<string, unknown>>): string[][] {
  const membersOf = (name: string): string[] => {
    const member = value[name];
    return typeof member === 'object' && member !== null ? Object.keys(member) : [];
  };
  return [
    ...Object.keys(value)
      .filter((name) => reservedAtTop.includes(name))
      .map((name) => [name]),
    ...membersOf('HostConfig')
      .filter((name) => reservedInHostConfig.includes(name))
      .map((name) => ['HostConfig', name]),
    ...membersOf('Labels')
      .filter((name) => reservedLabel.test(name))
      .map((name) => ['Labels', name]),
  ];
}
