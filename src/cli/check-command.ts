import type { Command } from 'commander';
import type { ConfigProblem } from '../errors.ts';
import type { CheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub check`. */
export function addCheckCommand(program: Command, io: CliIo): void {
  withConfig(program.command('check'))
    .description('check the configuration and load its plugins, without starting anything')
    .action(async (_flags: unknown, command: Command) => {
      const checked = await loadFor(command, io);
      io.stderr.write(formatWarnings(checked.warnings));
      io.stdout.write(summarise(checked));
    });
}

/** Formats what works but is probably a mistake, a line each. */
export function formatWarnings(warnings: readonly ConfigProblem[]): string {
  return warnings.map(({ path, message }) => `warning: ${path}: ${message}\n`).join('');
}

function summarise({ config, plugins }: CheckedConfig): string {
  const { Hub, publicUrl, file } = config;
  const managed = Hub.services.filter(({ command }) => command !== undefined).length;
  const services = `${Hub.services.length} (${managed} managed)`;
  const logins = plugins.authenticators.map(({ entry }) => entry.name).join(', ');
  return `${file} is fine.
  public URL      ${publicUrl.href}
  listens on      ${Hub.bind_url} and ${Hub.hub_bind_url}
  login           ${logins}
  services        ${services}
  roles, groups   ${Hub.load_roles.length}, ${Hub.load_groups.length}
`;
}
