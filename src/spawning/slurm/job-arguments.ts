import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { SlurmChoices } from './slurm-options.ts';

const bytesPerMebibyte = 2 ** 20;

/** Arguments of sbatch(1) for the job of a server. */
export function jobArguments(
  { limits, guarantees }: Pick<SpawnRequest, 'limits' | 'guarantees'>,
  chosen: SlurmChoices,
  job: { readonly name: string; readonly comment: string; readonly outputFile: string },
): string[] {
  // Slurm keeps for a job what it asks for, and no more: a limit is a guarantee as well.
  const memory = limits.memoryBytes ?? guarantees.memoryBytes;
  const cores = limits.cpuCores ?? guarantees.cpuCores;
  const settings: Readonly<Record<string, string | undefined>> = {
    'job-name': job.name,
    comment: job.comment,
    output: job.outputFile,
    chdir: '/',
    nodes: '1',
    ntasks: '1',
    export: 'NONE',
    partition: chosen.partition,
    account: chosen.account,
    qos: chosen.qos,
    time: chosen.timeMinutes?.toString(),
    constraint: chosen.constraint,
    mem: memory === undefined ? undefined : `${Math.ceil(memory / bytesPerMebibyte)}M`,
    'cpus-per-task': cores === undefined ? undefined : String(Math.ceil(cores)),
    gres: chosen.gres ?? (limits.gpus === undefined ? undefined : `gpu:${limits.gpus}`),
  };
  return [
    // A second run would have another address, which the hub would not know.
    '--no-requeue',
    ...Object.entries(settings).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}=${value}`],
    ),
    ...chosen.extraArguments,
  ];
}
