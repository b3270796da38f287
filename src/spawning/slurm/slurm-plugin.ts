import { text } from '../../platform/texts/text.ts';
import type { OptionsForm, SpawnerPlugin, SpawnerState } from '../../plugin/host/spawner.ts';
import { examineSlurm } from './examine-slurm.ts';
import { createJobUsage } from './job-usage.ts';
import { createSlurmCommands } from './slurm-commands.ts';
import {
  optionsSchema,
  profileOptionsSchema,
  type SlurmOptions,
  type SlurmProfile,
} from './slurm-options.ts';
import { createSlurmSpawner, readState } from './slurm-spawner.ts';

/** Servers as batch jobs of Slurm. */
export const slurmPlugin: SpawnerPlugin<SlurmOptions, SlurmProfile> = {
  kind: 'spawner',
  name: 'slurm',
  section: 'SlurmSpawner',
  optionsSchema,
  profileOptionsSchema,

  findProblems({ port_range: [first, last] }) {
    return first <= last
      ? []
      : [{ option: 'port_range', message: 'must begin with the lower port' }];
  },

  create(options, { log, hubId, activeServers }) {
    const { bin_directory: directory, sudo, slurm_conf: configuration } = options;
    // Not the hub's own: the accounts of users could read it from their programs.
    const environment = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C.UTF-8',
      ...(configuration !== undefined && { SLURM_CONF: configuration }),
    };
    const commands = createSlurmCommands({ directory, sudo, environment });
    const spawner = createSlurmSpawner({ options, commands, hubTag: hubId, activeServers, log });
    const form = formOf(options);
    const suspend = async (stored: SpawnerState, isSuspended: boolean): Promise<boolean> => {
      const state = readState(stored);
      if (state !== undefined) await commands.setSuspended(state.jobId, isSuspended);
      return state !== undefined;
    };
    return {
      ...spawner,
      ...(form === undefined ? {} : { optionsForm: form }),
      pause: (state) => suspend(state, true),
      async unpause(state) {
        await suspend(state, false);
      },
      async stop(state, how) {
        // It gets its signal only when it goes on; most jobs are not suspended.
        await suspend(state, false).catch(() => undefined);
        await spawner.stop(state, how);
      },
      usage: createJobUsage(commands, { log }),
      examine: (asked) => examineSlurm({ options, commands }, asked),
    };
  },
};

function formOf({
  choosable_partitions,
  longest_time_limit,
}: SlurmOptions): OptionsForm | undefined {
  const fields = [
    ...(choosable_partitions.length === 0
      ? []
      : [
          {
            name: 'partition',
            label: 'Partition',
            type: 'select',
            choices: choosable_partitions.map((value) => ({ value, label: value })),
          } as const,
        ]),
    ...(longest_time_limit === undefined
      ? []
      : [
          {
            name: 'time_limit',
            label: text`Time limit in minutes`,
            help: text`At most ${longest_time_limit}; a shorter one may start sooner.`,
            type: 'number',
            min: 1,
            max: longest_time_limit,
          } as const,
        ]),
  ];
  return fields.length === 0 ? undefined : { fields };
}
