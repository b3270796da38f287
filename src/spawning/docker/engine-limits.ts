import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { ResourceLimits } from '../../plugin/host/spawn-request.ts';
import type { Engine } from './engine.ts';
import type { EngineImage } from './images.ts';

/** What an engine can hold its containers to. */
export interface EngineLimits {
  /** Throws when the engine would leave a limit out, which it does without an error. */
  require(limits: ResourceLimits, signal: AbortSignal): Promise<void>;
  /** Throws when the engine would leave out that a container is to have GPUs. */
  requireGpus(signal: AbortSignal): Promise<void>;
  /** What it can hold no container to; empty where it holds all limits. */
  missing(signal: AbortSignal): Promise<readonly Limit[]>;
  /** Says that an image is for another architecture than the engine; undefined when it fits. */
  architectureProblem(image: string, found: EngineImage): Promise<Text | undefined>;
}

/** Limits in words for people. */
type Limit = 'memory' | 'CPU' | 'processes';

interface EngineInfo {
  readonly MemoryLimit?: boolean;
  readonly CpuCfsQuota?: boolean;
  readonly PidsLimit?: boolean;
  readonly Architecture?: string;
}

/** The kernel's names of architectures in those of images. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  armv7l: 'arm',
  i686: '386',
};

export function createEngineLimits(engine: Engine): EngineLimits {
  let asked: Promise<EngineInfo> | undefined;

  /** Asked once: it depends on the kernel and the cgroups of the engine's machine. */
  function info(signal?: AbortSignal): Promise<EngineInfo> {
    asked ??= engine
      .call(
        async (docker) => (await docker.info()) as EngineInfo,
        signal === undefined ? {} : { signal },
      )
      .catch((thrown: unknown) => {
        asked = undefined;
        throw thrown;
      });
    return asked;
  }

  async function missing(signal: AbortSignal): Promise<readonly Limit[]> {
    const { MemoryLimit: memory, CpuCfsQuota: CPU, PidsLimit: processes } = await info(signal);
    const held = { memory, CPU, processes };
    return (['memory', 'CPU', 'processes'] as const).filter((limit) => held[limit] === false);
  }

  return {
    missing,

    async require({ memoryBytes, cpuCores, processes }, signal) {
      const asked = { memory: memoryBytes, CPU: cpuCores, processes };
      const unenforced = (await missing(signal)).filter((limit) => asked[limit] !== undefined);
      if (unenforced.length === 0) return;
      throw new HubError(
        'upstream_failed',
        text`The container engine cannot limit ${unenforced.join(' and ')} on its machine.`,
        {
          hint: text`The administrator must enable the cgroup controllers there, or remove the limit.`,
        },
      );
    },

    async requireGpus(signal) {
      const { Components } = await engine.call((docker) => docker.version(), { signal });
      if (Components?.some(({ Name }) => Name === 'Podman Engine') !== true) return;
      throw new HubError('upstream_failed', text`Podman gives no GPUs over the API of Docker.`, {
        hint: text`The administrator must use Docker Engine, or remove the limit on GPUs.`,
      });
    },

    async architectureProblem(image, found) {
      const { Architecture: kernel = '' } = await info();
      const own = architectures[kernel] ?? kernel;
      if (own === '' || found.architecture === '' || found.architecture === own) return undefined;
      return text`the image ${image} is for ${found.architecture}, the engine's machine is ${own}`;
    },
  };
}
