import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ConfigError, HubError, StartupError } from '../../platform/errors.ts';
import { hubCommand, programFolder } from '../../platform/files/program-folder.ts';
import { addBackupCommands } from './backup-commands.ts';
import { addBudgetCommand } from './budget-command.ts';
import { addCheckCommand } from './check-command.ts';
import type { CliIo } from './cli-io.ts';
import { addCompletionCommands } from './completion-command.ts';
import { addDoctorCommand } from './doctor/doctor-command.ts';
import { addGatewayCommand } from './gateway-command.ts';
import { addGroupCommands } from './group-commands.ts';
import { addImportJupyterHubCommand } from './import-jupyterhub-command.ts';
import { addInitCommand } from './init-command.ts';
import { addKeyCommands } from './key-commands.ts';
import { addLockoutCommands } from './lockout-commands.ts';
import { addLoginCommands } from './login-commands.ts';
import { addLogsCommand } from './logs-command.ts';
import { addMaintenanceCommands } from './maintenance-commands.ts';
import { requireLocal } from './performing.ts';
import { addSchemaCommand } from './schema-command.ts';
import { addServerCommands } from './server-commands.ts';
import { addServiceCommands } from './service-commands.ts';
import { addSetupLinkCommand } from './setup-link-command.ts';
import { addReloadCommand, addStartCommand, addStopCommand } from './start-command.ts';
import { addStatusCommand } from './status-command.ts';
import { addTestPluginsCommand } from './test-plugins-command.ts';
import { addTextsCommand } from './texts-command.ts';
import { addTokenCommand } from './token-command.ts';
import { addUsageCommand } from './usage-command.ts';
import { addUserCommands } from './user-commands.ts';

export type ExitCode = 0 | 1 | 2;

/**
 * Runs one command of `hub` and returns its exit code: 0 when it did what it was asked, 2 when the
 * configuration is wrong (with every problem on standard error), 1 for anything else.
 */
export async function runCli(args: readonly string[], io: CliIo): Promise<ExitCode> {
  const program = createProgram(io);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    io.reportFailure(describeFailure(error));
    return error instanceof ConfigError ? 2 : 1;
  }
}

export function createProgram(io: CliIo): Command {
  const program: Command = new Command(hubCommand('').trim())
    .description(
      "One program on one port: login, OAuth 2 provider, gateway, users' servers, shared services.",
    )
    .version(readVersion(), '-V, --version')
    .option('--url <url>', `perform the command at a remote hub, after: ${hubCommand('login URL')}`)
    .hook('preAction', (_, command) => requireLocal(command))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .showSuggestionAfterError()
    .addHelpText('after', `\nFirst steps:\n  ${hubCommand('init')}\n  ${hubCommand('start')}`);
  addInitCommand(program, io);
  addStartCommand(program, io);
  addCheckCommand(program, io);
  addDoctorCommand(program, io);
  addReloadCommand(program, io);
  addStopCommand(program, io);
  addGatewayCommand(program, io);
  addStatusCommand(program, io, readVersion());
  addLogsCommand(program, io);
  addUserCommands(program, io);
  addGroupCommands(program, io);
  addServerCommands(program, io);
  addServiceCommands(program, io);
  addTokenCommand(program, io);
  addLoginCommands(program, io);
  addLockoutCommands(program, io);
  addKeyCommands(program, io);
  addUsageCommand(program, io);
  addBudgetCommand(program, io);
  addMaintenanceCommands(program, io);
  addSetupLinkCommand(program, io);
  addBackupCommands(program, io);
  addImportJupyterHubCommand(program, io);
  addSchemaCommand(program, io);
  addTextsCommand(program, io);
  addTestPluginsCommand(program, io);
  addCompletionCommands(program, io);
  return program;
}

function describeFailure(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof HubError) {
    return error.hint === undefined ? error.message : `${error.message}\n${error.hint}`;
  }
  if (error instanceof StartupError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Reads the version of the package. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(programFolder, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
