import type { Command } from 'commander';
import type { CliIo } from './cli-io.ts';
import { createPidFile } from './pid-file.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub start`. */
export function addStartCommand(program: Command, io: CliIo): void {
  withConfig(program.command('start'))
    .description('run the hub until it is told to stop (SIGTERM or Ctrl-C); SIGHUP reloads')
    .action(async (_flags: unknown, command: Command) => {
      const checked = await loadFor(command, io);
      await using pidFile = createPidFile(checked.config);
      await pidFile.write();
      await io.startHub({ checked, reload: () => loadFor(command, io) });
    });
}

/** Adds `hub reload`. */
export function addReloadCommand(program: Command, io: CliIo): void {
  withConfig(program.command('reload'))
    .description('check the configuration, then tell the running hub to take it over')
    .action(async (_flags: unknown, command: Command) => {
      const { config } = await loadFor(command, io);
      const { pid } = await createPidFile(config).signal('SIGHUP');
      io.stdout.write(`The hub (process ${pid}) reloads; its log shows what changed.\n`);
    });
}
