import { HubError } from '../../errors.ts';
import type { ResourceLimits } from '../../plugin-host/spawn-request.ts';
import type { Engine } from './engine.ts';
import type { EngineImage } from './images.ts';

/** What an engine can hold its containers to. */
export interface EngineLimits {
  /** Throws when the engine would leave a limit out, which it does without an error. */
  require(limits: ResourceLimits, signal: AbortSignal): Promise<void>;
  /** Says that an image is for another architecture than the engine; undefined when it fits. */
  architectureProblem(image: string, found: EngineImage): Promise<string | undefined>;
}

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

  return {
    async require({ memoryBytes, cpuCores, processes }, signal) {
      const { MemoryLimit, CpuCfsQuota, PidsLimit } = await info(signal);
      const unheld = [
        memoryBytes !== undefined && MemoryLimit === false ? 'memory' : undefined,
        cpuCores !== undefined && CpuCfsQuota === false ? 'CPU' : undefined,
        processes !== undefined && PidsLimit === false ? 'processes' : undefined,
      ].filter((each) => each !== undefined);
      if (unheld.length === 0) return;
      throw new HubError(
        'upstream_failed',
        `The container engine cannot limit ${unheld.join(' and ')} on its machine.`,
        {
          hint: 'The administrator must enable the cgroup controllers there, or remove the limit.',
        },
      );
    },

    async architectureProblem(image, found) {
      const { Architecture: kernel = '' } = await info();
      const own = architectures[kernel] ?? kernel;
      if (own === '' || found.architecture === '' || found.architecture === own) return undefined;
      return `the image ${image} is for ${found.architecture}, the engine's machine is ${own}`;
    },
  };
}
