import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Config } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { identifyProcess, isSameProcess } from '../../platform/process-table/process-table.ts';
import { findLockHolder, takeFileLock } from '../../platform/store/file-lock.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub start`. */
export function addStartCommand(program: Command, io: CliIo): void {
  withConfig(program.command('start'))
    .description('run the hub in the foreground; SIGTERM or Ctrl-C ends it, SIGHUP reloads')
    .action(async (_flags: unknown, command: Command) => {
      const checked = await loadFor(command, io);
      await io.openLog(checked);
      using _lock = await takeFileLock(
        lockFileOf(checked.config),
        (holder) =>
          `A hub runs with this configuration already (${holder}). To change it while it runs: ${hubCommand('reload')}`,
      );
      await io.startHub({ checked, reload: () => loadFor(command, io) });
    });
}

/** Adds `hub reload`. */
export function addReloadCommand(program: Command, io: CliIo): void {
  withConfig(program.command('reload'))
    .description('check the configuration, have the running hub take it over, and say what changed')
    .action(async (_flags: unknown, command: Command) => {
      const { config } = await loadFor(command, io);
      const pid = findRunningHub(config);
      if (pid === undefined) {
        throw new HubError('not_found', 'No hub runs with this configuration file.', {
          hint: `Start one with: ${hubCommand('start')}`,
        });
      }
      const { reloadAndReport } = await import('./reload-report.ts');
      io.stdout.write(await reloadAndReport(config, pid));
    });
}

/** The process of the hub that runs with a configuration file on this machine, if one does. */
export function findRunningHub(config: Pick<Config, 'directory' | 'file'>): number | undefined {
  return findLockHolder(lockFileOf(config));
}

const stopPollMs = 100;

/** Adds `hub stop`. */
export function addStopCommand(program: Command, io: CliIo): void {
  withConfig(program.command('stop'))
    .description('end the running hub with its gateways, and wait until it has stopped')
    .action(async (_flags: unknown, command: Command) => {
      const { config } = await loadFor(command, io);
      const pid = findLockHolder(lockFileOf(config));
      const identity = pid === undefined ? undefined : identifyProcess(pid);
      if (identity === undefined) {
        throw new HubError('not_found', 'No hub runs with this configuration file.', {
          hint: `Gateways that it left end by themselves within ${config.Hub.gateway_linger} seconds.`,
        });
      }
      process.kill(identity.pid, 'SIGINT');
      while (isSameProcess(identity)) await delay(stopPollMs);
      io.stdout.write('The hub has stopped.\n');
    });
}

/** Held by the hub that runs with a configuration file, in the folder `.hub` beside it. */
function lockFileOf({ directory, file = 'hub' }: Pick<Config, 'directory' | 'file'>): string {
  return join(directory, '.hub', `${basename(file)}.lock`);
}
