import { Argument, type Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { type Shell, shellScripts } from './completion-scripts.ts';

const shells = Object.keys(shellScripts) as Shell[];

const help = () => `
Examples:
  bash, in ~/.bashrc:                   source <(${hubCommand('completion bash')})
  zsh, in ~/.zshrc after compinit:      source <(${hubCommand('completion zsh')})
  fish, once:                           ${hubCommand('completion fish')} > ~/.config/fish/completions/hub.fish`;

/** Adds `hub completion`, and `hub complete`, which the scripts of that call at each press of the key. */
export function addCompletionCommands(program: Command, io: CliIo): void {
  program
    .command('completion')
    .description('print a script that has a shell complete commands, options and names')
    .addArgument(new Argument('<shell>', 'for which shell').choices(shells))
    .addHelpText('after', help)
    .action((shell: Shell) => void io.stdout.write(shellScripts[shell]));
  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'of the command line after `hub`; the last one is completed')
    .action(async (words: readonly string[]) => {
      const { listCompletions } = await import('./list-completions.ts');
      for (const line of await listCompletions(program, words, io)) io.stdout.write(`${line}\n`);
    });
}
