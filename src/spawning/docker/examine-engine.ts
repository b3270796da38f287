import { type Finding, failed, ok, skipped, warning } from '../../plugin/host/finding.ts';
import type { ExamineOptions } from '../../plugin/host/spawner.ts';
import { isRootUser } from './create-request.ts';
import type { DockerOptions, DockerProfileOptions } from './docker-options.ts';
import type { Engine } from './engine.ts';
import { engineMessage, isMissing } from './engine-errors.ts';
import type { EngineLimits } from './engine-limits.ts';
import { type EngineImage, type Images, withTag } from './images.ts';

interface EngineParts {
  readonly engine: Engine;
  readonly images: Images;
  readonly limits: EngineLimits;
  readonly options: DockerOptions;
}

/** An image of the configuration, and how it is used. */
export interface UsedImage {
  readonly policy: DockerOptions['pull_policy'];
  /** What the configuration says in place of `USER` in the image. */
  readonly user: string | undefined;
}

/** Looks at an engine for `hub doctor`; see `Spawner.examine`. */
export async function examineEngine(
  parts: EngineParts,
  { signal, profileOptions }: ExamineOptions<DockerProfileOptions>,
): Promise<readonly Finding[]> {
  const reached = await checkEngine(parts, signal);
  // Whatever else would be asked gets no answer either.
  if (reached.state === 'failed') return [reached];
  const profiles = [...profileOptions.values()];
  const checks = [
    checkLimits(parts, signal),
    ...networksOf(parts.options, profiles).map((network) => checkNetwork(parts, network, signal)),
    ...[...imagesOf(parts.options, profiles)].map(([image, used]) =>
      checkImage(parts, { image, used, signal }),
    ),
  ];
  return [reached, ...(await Promise.all(checks))];
}

async function checkEngine({ engine }: EngineParts, signal: AbortSignal): Promise<Finding> {
  const check = 'engine';
  try {
    const version = await engine.call((docker) => docker.version(), { signal });
    const [component] = version.Components ?? [];
    const name = component?.Name === 'Engine' ? 'Docker Engine' : (component?.Name ?? 'the engine');
    const what = `${name} ${version.Version}, API ${version.ApiVersion}`;
    return ok(check, `${what}, answers at ${await engine.address()}`);
  } catch (thrown) {
    signal.throwIfAborted();
    const fix =
      "start it, correct DockerSpawner.host and its TLS files, or let the hub's account use its socket";
    return failed(check, engineMessage(thrown), fix);
  }
}

async function checkLimits({ limits }: EngineParts, signal: AbortSignal): Promise<Finding> {
  const missing = await limits.missing(signal);
  if (missing.length === 0) return ok('limits', 'memory, CPU and processes can be limited');
  return warning(
    'limits',
    `servers with a limit of ${missing.join(' or ')} are refused: the engine cannot hold it`,
    "enable the cgroup controllers on the engine's machine, or remove such limits",
  );
}

async function checkNetwork(
  { engine }: EngineParts,
  network: string,
  signal: AbortSignal,
): Promise<Finding> {
  const check = `network ${network}`;
  try {
    const { Driver: driver } = await engine.call(
      (docker) => docker.getNetwork(network).inspect() as Promise<{ readonly Driver: string }>,
      { signal },
    );
    return ok(check, `is there (${driver})`);
  } catch (thrown) {
    signal.throwIfAborted();
    const detail = isMissing(thrown) ? 'is not there' : engineMessage(thrown);
    return failed(check, detail, `docker network create ${network}`);
  }
}

async function checkImage(
  { images, limits, options }: EngineParts,
  {
    image,
    used,
    signal,
  }: { readonly image: string; readonly used: UsedImage; readonly signal: AbortSignal },
): Promise<Finding> {
  const check = `image ${image}`;
  const found = await images.find(image, signal);
  if (found !== undefined) {
    const problem = await limits.architectureProblem(image, found);
    if (problem !== undefined) {
      return failed(
        check,
        String(problem),
        "build or pull it for the engine's machine (--platform)",
      );
    }
    return rootFinding(check, found, { used, options }) ?? ok(check, 'is on the engine');
  }
  if (used.policy === 'never') {
    return failed(
      check,
      'is not on the engine, and none is pulled (pull_policy)',
      `docker pull ${image}`,
    );
  }
  const problem = await images.askRegistry(image, signal);
  if (problem === 'unasked') return skipped(check, 'is pulled at the first start that needs it');
  if (problem === undefined) {
    const when = options.pull_ahead ? 'ahead' : 'at the first start that needs it';
    return ok(check, `is in its registry, and pulled ${when}`);
  }
  return failed(
    check,
    problem,
    'correct its name, or set DockerSpawner.registry, registry_username and registry_password',
  );
}

function rootFinding(
  check: string,
  { user }: EngineImage,
  { used, options }: { readonly used: UsedImage; readonly options: DockerOptions },
): Finding | undefined {
  if (options.allow_root || !isRootUser(used.user ?? user)) return undefined;
  const fix = 'set DockerSpawner.user, such as "1000:1000", or USER in the image';
  return failed(check, 'its servers would run as root, so none is started', fix);
}

function networksOf(options: DockerOptions, profiles: readonly DockerProfileOptions[]): string[] {
  const all = new Set(profiles.map(({ network }) => network ?? options.network));
  // That of the machine is always there.
  return [...all].filter((network) => network !== 'host');
}

/** Every image that a server can have, by its name with a tag. */
export function imagesOf(
  options: DockerOptions,
  profiles: readonly DockerProfileOptions[],
): ReadonlyMap<string, UsedImage> {
  const all = profiles.flatMap((profile) => {
    const own = profile.image === undefined ? options.image : profile.image;
    const allowed =
      profile.allowed_images ?? (profile.image === undefined ? options.allowed_images : {});
    const used = {
      policy: profile.pull_policy ?? options.pull_policy,
      user: profile.user ?? options.user,
    };
    const names = [...(own === undefined ? [] : [own]), ...Object.values(allowed)];
    return names.map((name) => [withTag(name), used] as const);
  });
  return new Map(all);
}
