import { z } from 'zod';
import { messageOf } from '../../platform/errors.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { ResourceUsage, SpawnerState } from '../../plugin/host/spawner.ts';
import type { JobFigures } from './job-figures.ts';
import type { SlurmCommands } from './slurm-commands.ts';

/** What jobs use, in the order of their states; undefined for those of which Slurm has no figures. */
type JobUsage = (
  states: readonly SpawnerState[],
) => Promise<readonly (ResourceUsage | undefined)[]>;

interface Sample extends JobFigures {
  readonly atMs: number;
}

const stateSchema = z.object({ jobId: z.string().regex(/^\d+$/) });

const freshMs = 9_000;
/** For each job, sstat asks the controller and a node: many jobs are asked for less often. */
const restPerAsking = 10;
/** How long Slurm is left alone that has no figures, or does not show them. */
const refusedMs = 300_000;
/** CPU time comes in whole seconds; over some readings it makes a steady figure. */
const samplesPerJob = 4;

/** Asks Slurm what jobs use: once for all of them. A job has figures from its second reading on. */
export function createJobUsage(
  commands: Pick<SlurmCommands, 'measureJobs'>,
  { log, now = () => performance.now() }: { readonly log: PluginLog; readonly now?: () => number },
): JobUsage {
  let samples: ReadonlyMap<string, readonly Sample[]> = new Map();
  let untilMs = Number.NEGATIVE_INFINITY;
  let isReported = false;

  async function read(ids: readonly string[]): Promise<void> {
    const startedAtMs = now();
    const { figures, refusal } = await commands
      .measureJobs(ids)
      .catch((thrown: unknown) => ({ figures: [], refusal: messageOf(thrown) }));
    const atMs = now();
    samples = new Map(
      figures.map((each) => [each.jobId, addSample(samples.get(each.jobId), { ...each, atMs })]),
    );
    const hasFailed = figures.length === 0 && refusal !== undefined;
    untilMs =
      atMs + (hasFailed ? refusedMs : Math.max(freshMs, restPerAsking * (atMs - startedAtMs)));
    if (refusal === undefined) isReported = false;
    else if (!isReported) {
      isReported = true;
      log.warn(
        {},
        `CPU and memory of ${hasFailed ? '' : 'some '}servers are not known: ${refusal}`,
      );
    }
  }

  return async (states) => {
    const ids = states.map((state) => stateSchema.safeParse(state).data?.jobId);
    const asked = [...new Set(ids.filter((id) => id !== undefined))];
    if (asked.length > 0 && now() >= untilMs) await read(asked);
    return ids.map((id) => (id === undefined ? undefined : usageOf(samples.get(id))));
  };
}

function addSample(known: readonly Sample[] = [], sample: Sample): readonly Sample[] {
  const last = known.at(-1);
  // A job that Slurm put back into its queue begins again under the same id.
  const isSameRun = last !== undefined && last.cpuSeconds <= sample.cpuSeconds;
  return isSameRun ? [...known, sample].slice(-samplesPerJob) : [sample];
}

function usageOf(samples: readonly Sample[] = []): ResourceUsage | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return undefined;
  return {
    cpuSeconds: last.cpuSeconds,
    cpuCores: (last.cpuSeconds - first.cpuSeconds) / ((last.atMs - first.atMs) / 1000),
    memoryBytes: last.memoryBytes,
  };
}
