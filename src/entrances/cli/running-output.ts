import type { Instance } from '../../cluster/instances/instance.ts';
import { placeOf } from '../../cluster/instances/instance-directory.ts';
import { createInstanceStore } from '../../cluster/instances/instance-store.ts';
import { noHubRuns } from '../../operations/perform-command.ts';
import type { Config } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { OutputPart, OutputPosition } from '../../spawning/processes/output-feed.ts';
import { serverOutputOperation } from '../../workloads/servers/server-output.ts';
import { createServerStore } from '../../workloads/servers/server-store.ts';
import {
  createServiceOwnerStore,
  serviceOutputOperation,
} from '../../workloads/services/service-owner-store.ts';
import type { Program } from './find-program.ts';
import { createHubChannel } from './hub-channel.ts';

/** Reads what programs write, by asking the hub that runs them as other instances of it do. */
export interface RunningOutput {
  /**
   * The output, and the run of the hub that answered. Throws `unavailable` where nothing runs the program, or the
   * hub that does so does not answer.
   */
  read(
    program: Program,
    options?: {
      readonly after?: OutputPosition | undefined;
      readonly max?: number | undefined;
      readonly withinSeconds?: number | undefined;
    },
  ): Promise<{ readonly part: OutputPart; readonly instance: Instance }>;
}

export function createRunningOutput(
  database: HubDatabase,
  config: Pick<Config, 'Hub' | 'directory' | 'basePath'>,
): RunningOutput {
  const channel = createHubChannel(config, database);
  const instances = createInstanceStore(database);
  const servers = createServerStore(database);
  const owners = createServiceOwnerStore(database, '');

  async function whoRuns(program: Program): Promise<string | undefined> {
    if (program.kind === 'server') {
      const server = await servers.findById(program.server.id);
      return server?.state === 'stopped' ? undefined : server?.instance?.id;
    }
    return (await owners.list()).find(({ name }) => name === program.name)?.instanceId;
  }

  return {
    async read(program, options) {
      const up = (await instances.list()).filter((each) => placeOf(each, channel.here).isUp);
      if (up.length === 0) throw noHubRuns();
      const owner = await whoRuns(program);
      if (owner === undefined) {
        const what = program.kind === 'server' ? 'The server' : `The service "${program.name}"`;
        throw new HubError('unavailable', `${what} does not run.`);
      }
      const instance = up.find(({ id }) => id === owner);
      if (instance === undefined) {
        throw new HubError('unavailable', 'The hub that ran it has ended without stopping it.', {
          hint: `${hubCommand('status')} shows which do run.`,
        });
      }
      const [operation, params] =
        program.kind === 'server'
          ? [serverOutputOperation, { serverId: program.server.id, ...options }]
          : [serviceOutputOperation, { name: program.name, ...options }];
      const part = await channel.call(instance, operation, params);
      return { part: part as OutputPart, instance };
    },
  };
}
