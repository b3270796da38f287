import type { Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub service start|stop|restart`. */
export function addServiceCommands(program: Command, io: CliIo): void {
  const service = program
    .command('service')
    .description(`start and stop what the running hub manages; ${hubCommand('status')} shows it`);
  for (const [name, operation, description] of [
    ['start', 'startService', 'start a service that was stopped by hand'],
    ['stop', 'stopService', 'stop a service until it is started by hand'],
    ['restart', 'restartService', 'restart a service'],
  ] as const) {
    const command = withConfig(service.command(name))
      .description(description)
      .argument('<service>', 'name of the service');
    performing(command, io, [operation], async (perform, asked: string) => {
      const { message } = await perform(operation, { params: { service: asked } });
      io.stdout.write(`${asked}: ${message}\n`);
    });
  }
}
