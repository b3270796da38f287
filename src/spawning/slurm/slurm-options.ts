import { z } from 'zod';
import { TextError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';

const name = z
  .string()
  .regex(/^[A-Za-z0-9_.:,&|*[\]-]+$/, 'holds what no name of Slurm has')
  .max(255);
const minutes = z.int().positive().max(525_600);

const jobSettings = {
  partition: name.optional().describe('Partition (`--partition`).'),
  account: name.optional().describe('Account to charge (`--account`).'),
  qos: name.optional().describe('Quality of service (`--qos`).'),
  time_limit: minutes
    .optional()
    .describe("Time limit of the job in minutes (`--time`); the partition's by default."),
  gres: name.optional().describe('Generic resources such as `gpu:a100:1` (`--gres`).'),
  constraint: name.optional().describe('Features that the node must have (`--constraint`).'),
  modules: z
    .array(z.string().regex(/^[\w.+/-]+$/, 'is not the name of a module'))
    .optional()
    .describe('Environment modules to load before the command, such as `python/3.12`.'),
  prologue: z
    .string()
    .max(16_384)
    .optional()
    .describe('Lines of Bash to run in the job before the command.'),
  extra_arguments: z
    .array(z.string().regex(/^--[a-z-]+(=.*)?$/s, 'must be a long option such as `--exclusive`'))
    .optional()
    .describe('More options of sbatch(1).'),
};

/** What a profile can say of its jobs. */
export const profileOptionsSchema = z.strictObject(jobSettings);

export const optionsSchema = z.strictObject({
  ...jobSettings,
  bin_directory: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Folder with `sbatch`, `squeue`, `scancel`, `scontrol` and `sstat`; the usual folders by default.',
    ),
  slurm_conf: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe("Slurm's configuration file, if not in its usual place (SLURM_CONF)."),
  sudo: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe(
      'Prefix for commands that run as the user, `{username}`: ' +
        '`["sudo", "-n", "-u", "{username}", "--"]`. A hub that runs as root needs none.',
    ),
  job_name_prefix: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, 'must be lower-case letters, digits and hyphens')
    .default('hub')
    .describe('Prefix of job names; must be unique where several hubs share a cluster.'),
  output: z
    .string()
    .min(1)
    .default('.hub-server-%j.log')
    .describe(
      "File for the server's output, below its working directory unless absolute; `%j` is the number of the " +
        'job, `{server}` the name of the server. The hub reads it where it sees the file.',
    ),
  port_range: z
    .tuple([z.int().min(1024).max(65_535), z.int().min(1024).max(65_535)])
    .default([20_000, 29_999])
    .describe(
      'First and last port for servers on the nodes. The hub must be able to reach them, and they must lie outside `ip_local_port_range`.',
    ),
  poll_interval: z
    .number()
    .min(0.2)
    .max(300)
    .default(5)
    .describe(
      'Seconds between queries to Slurm while jobs are pending or starting; one query covers all jobs.',
    ),
  choosable_partitions: z
    .array(name)
    .default([])
    .describe('Partitions that users may choose from when they start a server.'),
  longest_time_limit: minutes
    .optional()
    .describe('Maximum time limit that users may request, in minutes.'),
});

export type SlurmOptions = z.output<typeof optionsSchema>;
export type SlurmProfile = z.output<typeof profileOptionsSchema>;

/** What a job is submitted with. */
export interface SlurmChoices {
  readonly partition: string | undefined;
  readonly account: string | undefined;
  readonly qos: string | undefined;
  readonly timeMinutes: number | undefined;
  readonly gres: string | undefined;
  readonly constraint: string | undefined;
  readonly modules: readonly string[];
  readonly prologue: string;
  readonly extraArguments: readonly string[];
}

/** Profile before general options, what the user chose before both. Throws for what is not on offer. */
export function chooseFor(
  options: SlurmOptions,
  { profileOptions, userOptions }: Pick<SpawnRequest, 'profileOptions' | 'userOptions'>,
): SlurmChoices {
  const profile = profileOptionsSchema.parse(profileOptions ?? {});
  const { partition: wantedPartition, time_limit: wantedTime } = userOptions;
  return {
    partition: choosePartition(options, wantedPartition) ?? profile.partition ?? options.partition,
    account: profile.account ?? options.account,
    qos: profile.qos ?? options.qos,
    timeMinutes: chooseTime(options, wantedTime) ?? profile.time_limit ?? options.time_limit,
    gres: profile.gres ?? options.gres,
    constraint: profile.constraint ?? options.constraint,
    modules: profile.modules ?? options.modules ?? [],
    prologue: profile.prologue ?? options.prologue ?? '',
    extraArguments: [...(options.extra_arguments ?? []), ...(profile.extra_arguments ?? [])],
  };
}

function choosePartition(
  { choosable_partitions }: SlurmOptions,
  wanted: unknown,
): string | undefined {
  if (wanted === undefined || wanted === '') return undefined;
  if (typeof wanted === 'string' && choosable_partitions.includes(wanted)) return wanted;
  const offered = choosable_partitions.join(', ') || 'none';
  throw new TextError(
    text`The partition ${JSON.stringify(wanted)} is not on offer; there are: ${offered}.`,
  );
}

function chooseTime(
  { longest_time_limit: longest }: SlurmOptions,
  wanted: unknown,
): number | undefined {
  if (wanted === undefined || wanted === '') return undefined;
  const isOffered = typeof wanted === 'number' && Number.isInteger(wanted) && longest !== undefined;
  if (isOffered && wanted >= 1 && wanted <= longest) return wanted;
  throw new TextError(
    longest === undefined
      ? text`The time limit cannot be chosen here.`
      : longest === 1
        ? text`The time limit must be 1 minute.`
        : text`The time limit must be between 1 and ${longest} minutes.`,
  );
}
