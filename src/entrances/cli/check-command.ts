import type { Command } from 'commander';
import { inOrder } from '../../platform/config/load.ts';
import { type ConfigProblem, describeProblem } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';
import { runDoctor } from './doctor/doctor-command.ts';
import { findRunningHub } from './start-command.ts';
import { checkSubdomainSetup, recommendSubdomains } from './subdomain-check.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub check`. */
export function addCheckCommand(program: Command, io: CliIo): void {
  withConfig(program.command('check'))
    .description('check the configuration and load its plugins, without starting anything')
    .option('--deep', `check everything around it too, as ${hubCommand('doctor')} does`)
    .option(
      '--acme',
      "order a certificate as Hub.acme says, at the staging directory of Let's Encrypt, or at any other authority itself, and throw it away",
    )
    .action(async ({ deep, acme }: { deep?: boolean; acme?: boolean }, command: Command) => {
      const checked = await loadFor(command, io);
      const { config, plugins, warnings, places } = checked;
      const found = await checkSubdomainSetup(config);
      io.stderr.write(formatWarnings(inOrder([...warnings, ...found], places)));
      io.stdout.write(summarise(checked));
      io.stdout.write(format('recommended', recommendSubdomains(config, plugins)));
      if (acme === true) {
        const { tryAcme } = await import('./acme-check.ts');
        const isHubRunning = findRunningHub(config) !== undefined;
        const signal = io.untilInterrupted();
        io.stdout.write(await tryAcme(config, { env: io.env, isHubRunning, signal }));
      }
      if (deep === true) await runDoctor(checked, io, { json: false });
    });
}

/** Formats what works but is probably a mistake, a line each. */
export function formatWarnings(warnings: readonly ConfigProblem[]): string {
  return format('warning', warnings);
}

function format(label: string, problems: readonly ConfigProblem[]): string {
  return problems.map((problem) => `${label}: ${describeProblem(problem)}\n`).join('');
}

function summarise({ config, plugins }: CheckedConfig): string {
  const { Hub, publicUrl, connectUrl, file } = config;
  const managed = Hub.services.filter(({ command }) => command !== undefined).length;
  const services = `${Hub.services.length} (${managed} managed)`;
  const logins = plugins.authenticators.map(({ entry }) => entry.name).join(', ');
  return `${file} is fine.
  public URL      ${publicUrl.href}
  listens on      ${Hub.bind_url} and ${Hub.hub_bind_url}
  API address     ${connectUrl.origin}, for servers and services
  login           ${logins}
  services        ${services}
  roles, groups   ${Hub.load_roles.length}, ${Hub.load_groups.length}
`;
}
