import type { ContainerCreateOptions, HostConfig, MountSettings } from 'dockerode';
import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnRequest, Volume } from '../../plugin/host/spawn-request.ts';
import { environmentInImage } from '../images/image-environment.ts';
import { processTagVariable } from '../processes/process-tag.ts';
import { fillGuardedCommand } from '../processes/singleuser-program.ts';
import type { DockerOptions, DockerProfileOptions } from './docker-options.ts';

/** Labels by which the hub finds its containers and volumes. */
export const hubLabels = {
  hub: 'hub.id',
  serverId: 'hub.server-id',
  user: 'hub.user',
  account: 'hub.account',
  serverName: 'hub.server-name',
} as const;

/** `root`, `0` and nothing at all are root. */
const rootUser = /^(?:root|0+)?(?::|$)/;

/** Whether a `User` of a container or image is root. */
export function isRootUser(user: string): boolean {
  return rootUser.test(user);
}

/** Where a server is to listen in its container. */
export interface ListenAddress {
  readonly ip: string;
  readonly port: number;
  /** Whether the engine publishes the port on its machine. */
  readonly isPublished: boolean;
}

export interface CreateParts {
  readonly request: SpawnRequest<DockerProfileOptions>;
  readonly options: DockerOptions;
  readonly hubId: string;
  /** Name of the container. */
  readonly name: string;
  readonly image: string;
  readonly network: string;
  readonly listen: ListenAddress;
}

/** The request that creates the container of a server (Docker Engine API, ContainerCreate). */
export function createRequest(parts: CreateParts): ContainerCreateOptions {
  const { request, options, image, network, listen, name } = parts;
  const { profileOptions } = request;
  const url = `http://${listen.ip}:${listen.port}`;
  const environment = {
    ...request.environment,
    ...request.environmentForUrl(url),
    // By it the processes are told from others of this machine; in a network of its own no port is stolen.
    ...(network === 'host' ? { [processTagVariable]: name } : {}),
  };
  const command = fillGuardedCommand(request.command, (text) =>
    text.replaceAll('{ip}', listen.ip).replaceAll('{port}', String(listen.port)),
  );
  const port = `${listen.port}/tcp`;
  const user = profileOptions.user ?? options.user;
  const base: ContainerCreateOptions = {
    name,
    Image: image,
    ...(command.length === 0 ? {} : { Cmd: command }),
    Env: environmentInImage(environment).map(([variable, value]) => `${variable}=${value}`),
    Labels: { ...options.labels, ...labelsOf(parts) },
    Tty: false,
    OpenStdin: false,
    ...(user === undefined ? {} : { User: user }),
    ...(options.working_dir === undefined ? {} : { WorkingDir: options.working_dir }),
    ...(listen.isPublished ? { ExposedPorts: { [port]: {} } } : {}),
    HostConfig: hostConfig(parts, port),
  };
  return [options.create_options, profileOptions.create_options ?? {}].reduce(
    merged,
    base as Readonly<Record<string, unknown>>,
  ) as ContainerCreateOptions;
}

function labelsOf({ request, hubId }: CreateParts): Record<string, string> {
  return {
    [hubLabels.hub]: hubId,
    [hubLabels.serverId]: request.serverId,
    [hubLabels.user]: request.userName,
    [hubLabels.serverName]: request.serverName,
  };
}

/** How many GPUs a server is to have; undefined for none. */
export function gpusOf(
  { limits }: Pick<SpawnRequest, 'limits'>,
  options: Pick<DockerOptions, 'gpus'>,
): number | 'all' | undefined {
  const gpus = limits.gpus ?? options.gpus;
  return gpus === 0 ? undefined : gpus;
}

function hostConfig({ request, options, network, listen }: CreateParts, port: string): HostConfig {
  const { limits, guarantees } = request;
  const { memoryBytes, cpuCores } = limits;
  const gpus = gpusOf(request, options);
  return {
    NetworkMode: network,
    ...(listen.isPublished
      ? { PortBindings: { [port]: [{ HostIp: options.host_ip, HostPort: '' }] } }
      : {}),
    Mounts: mountsOf(request.volumes),
    // Without swap: a limit on memory that pushes a server to the disk slows down all the others.
    ...(memoryBytes === undefined ? {} : { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(guarantees.memoryBytes === undefined ? {} : { MemoryReservation: guarantees.memoryBytes }),
    ...(cpuCores === undefined ? {} : { NanoCpus: Math.round(cpuCores * 1e9) }),
    ...(guarantees.cpuCores === undefined
      ? {}
      : { CpuShares: Math.max(2, Math.round(guarantees.cpuCores * 1024)) }),
    PidsLimit: limits.processes ?? options.pids_limit,
    ...(gpus === undefined
      ? {}
      : { DeviceRequests: [{ Count: gpus === 'all' ? -1 : gpus, Capabilities: [['gpu']] }] }),
    CapDrop: [...options.cap_drop],
    CapAdd: [...options.cap_add],
    SecurityOpt: options.no_new_privileges ? ['no-new-privileges'] : [],
    ReadonlyRootfs: options.read_only,
    Privileged: false,
    Init: options.init,
    // What a server prints must not fill the disk of the engine.
    LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } },
    RestartPolicy: { Name: 'no' },
    AutoRemove: false,
  };
}

/** Throws when a user could choose what is mounted. */
function mountsOf(volumes: readonly Volume[]): MountSettings[] {
  for (const volume of volumes) requireSafe(volume, volumes);
  return volumes.map(({ source, target, readOnly }): MountSettings => {
    if (source.startsWith('/')) {
      return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
    }
    return {
      Type: 'volume',
      Source: source,
      Target: target,
      ReadOnly: readOnly,
      VolumeOptions: {
        NoCopy: false,
        Labels: {},
        DriverConfig: { Name: '', Options: {} },
      },
    };
  });
}

const volumeName = /^[a-zA-Z0-9][\w.-]*$/;

function requireSafe({ source, subPath, target }: Volume, volumes: readonly Volume[]): void {
  const refuse = (problem: Text) =>
    new HubError('internal', text`The volume ${source} cannot be mounted: ${problem}.`, {
      hint: text`The administrator must correct the volumes of servers.`,
    });
  const isFolder = source.startsWith('/');
  // Older engines would mount all of it.
  if (subPath !== undefined)
    throw refuse(text`sub_path is for Kubernetes; name a folder as its source`);
  if (isFolder ? hasDots(source) : !volumeName.test(source)) {
    throw refuse(
      isFolder ? text`its path has "." or ".." in it` : text`this cannot be the name of a volume`,
    );
  }
  if (!target.startsWith('/') || target === '/' || hasDots(target)) {
    throw refuse(text`its target must be an absolute path below /`);
  }
  // In a folder that they can write to, users could put a symbolic link to any other in place of this one.
  const outer = volumes.find(
    (each) => !each.readOnly && each.source !== source && isWithin(source, each.source),
  );
  if (isFolder && outer !== undefined)
    throw refuse(text`it lies in ${outer.source}, which users can write to`);
}

function hasDots(path: string): boolean {
  return path.split('/').some((segment) => segment === '.' || segment === '..');
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

type Json = Readonly<Record<string, unknown>>;

/** Objects are merged, lists joined, everything else replaced. */
function merged(base: Json, addition: Json): Json {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(addition)) {
    const before = Object.hasOwn(result, name) ? result[name] : undefined;
    if (isObject(before) && isObject(value)) result[name] = merged(before, value);
    else if (Array.isArray(before) && Array.isArray(value)) result[name] = [...before, ...value];
    else result[name] = value;
  }
  return result;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
