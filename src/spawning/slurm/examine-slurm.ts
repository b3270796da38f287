import { type Finding, failed, ok, warning } from '../../plugin/host/finding.ts';
import type { ExamineOptions } from '../../plugin/host/spawner.ts';
import { type SlurmCommands, SlurmRefusal, SlurmUnavailable } from './slurm-commands.ts';
import type { SlurmOptions, SlurmProfile } from './slurm-options.ts';

interface SlurmParts {
  readonly options: SlurmOptions;
  readonly commands: SlurmCommands;
}

const programs = ['sbatch', 'squeue', 'scancel', 'scontrol'] as const;

/** Looks at a cluster for `hub doctor`; see `Spawner.examine`. */
export async function examineSlurm(
  parts: SlurmParts,
  { signal, profileOptions }: ExamineOptions<SlurmProfile>,
): Promise<readonly Finding[]> {
  const installed = await checkPrograms(parts, signal);
  if (installed.state === 'failed') return [installed];
  const reached = await checkController(parts, signal);
  if (reached.state === 'failed') return [installed, reached];
  const partitions = partitionsOf(parts.options, [...profileOptions.values()]);
  const found = partitions.map((partition) => checkPartition(parts, partition, signal));
  return [installed, reached, ...(await Promise.all(found))];
}

async function checkPrograms({ commands }: SlurmParts, signal: AbortSignal): Promise<Finding> {
  const check = 'programs';
  try {
    const [version = ''] = await Promise.all(
      programs.map((name) =>
        commands.versionOf(name, signal).catch((thrown: unknown) => {
          if (!(thrown instanceof SlurmRefusal || thrown instanceof SlurmUnavailable)) throw thrown;
          throw new SlurmRefusal(`${name} says: ${messageOf(thrown)}`, { cause: thrown });
        }),
      ),
    );
    return ok(check, `${programs.join(', ')} of ${version}`);
  } catch (thrown) {
    signal.throwIfAborted();
    const fix =
      thrown instanceof SlurmRefusal
        ? "set SlurmSpawner.slurm_conf to the cluster's slurm.conf, or mend what it says"
        : "install Slurm's clients on the hub's machine, or set SlurmSpawner.bin_directory to their folder";
    return failed(check, messageOf(thrown), fix);
  }
}

async function checkController({ commands }: SlurmParts, signal: AbortSignal): Promise<Finding> {
  const check = 'controller';
  try {
    const queues = await commands.listQueues(signal);
    const waiting = [...queues.values()].reduce((sum, jobs) => sum + jobs.length, 0);
    return ok(check, `answers; ${waiting === 1 ? 'one job waits' : `${waiting} jobs wait`}`);
  } catch (thrown) {
    signal.throwIfAborted();
    const detail = messageOf(thrown);
    const fix = /munge|authentication/i.test(detail)
      ? "start munge on the hub's machine, with the key of the cluster (/etc/munge/munge.key) and the same time"
      : 'start slurmctld, or correct SlurmSpawner.slurm_conf and the network to the controller';
    return failed(check, detail, fix);
  }
}

async function checkPartition(
  { commands }: SlurmParts,
  partition: string,
  signal: AbortSignal,
): Promise<Finding> {
  const check = `partition ${partition}`;
  try {
    const state = await commands.partitionState(partition, signal);
    if (state === 'UP') return ok(check, 'takes and runs jobs');
    const fix = `scontrol update PartitionName=${partition} State=UP`;
    return warning(check, `is ${state}: jobs there do not start`, fix);
  } catch (thrown) {
    signal.throwIfAborted();
    const fix = 'correct SlurmSpawner.partition, choosable_partitions or the profile';
    return failed(check, messageOf(thrown), fix);
  }
}

function partitionsOf(options: SlurmOptions, profiles: readonly SlurmProfile[]): string[] {
  const all = [
    ...profiles.map((profile) => profile.partition ?? options.partition),
    ...options.choosable_partitions,
  ];
  return [...new Set(all.filter((each) => each !== undefined).flatMap((each) => each.split(',')))];
}

function messageOf(thrown: unknown): string {
  return (thrown instanceof Error ? thrown.message : String(thrown)).replace(/\.$/, '');
}
