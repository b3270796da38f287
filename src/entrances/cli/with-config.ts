import type { Command } from 'commander';
import { type CheckedConfig, loadCheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';

/** Adds `--config FILE` to a command. */
export function withConfig(command: Command): Command {
  return command.option(
    '-c, --config <file>',
    'configuration file (default: hub.config.json, else hub.config.example.json)',
  );
}

/** Loads and checks the configuration that a command was given. */
export async function loadFor(
  command: Command,
  io: Pick<CliIo, 'env' | 'directory'>,
): Promise<CheckedConfig> {
  const { config } = command.opts<{ config?: string }>();
  return await loadCheckedConfig({ file: config, env: io.env, directory: io.directory });
}
