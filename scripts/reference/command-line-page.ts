import type { Command } from 'commander';
import { createProgram } from '../../src/entrances/cli/run-cli.ts';
import { createCommandLine } from '../../src/singleuser/command-line.ts';
import { generatedNote } from './markdown.ts';

/** The commands of `hub`, those inside others too, by what one types. */
export function listCommands(): readonly { readonly name: string; readonly command: Command }[] {
  const never = () => Promise.reject(new Error('nothing is run here'));
  const program = createProgram({
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: {},
    untilInterrupted: () => new AbortController().signal,
    reportFailure: () => undefined,
    openLog: () => Promise.resolve(),
    startHub: never,
    startGateway: never,
    openOperations: never,
  });
  return inside(program, 'hub');
}

function inside(parent: Command, prefix: string): { name: string; command: Command }[] {
  return parent
    .createHelp()
    .visibleCommands(parent)
    .flatMap((command) => {
      if (command.name() === 'help') return [];
      const name = `${prefix} ${command.name()}`;
      return command.commands.length > 0 ? inside(command, name) : [{ name, command }];
    });
}

export const signalsAndExitCodes = `A running hub takes these signals: SIGTERM and SIGINT stop it (requests in flight get
\`Hub.shutdown_timeout\` seconds), SIGHUP reloads the configuration. Exit codes: 0 for success, 2 for a
configuration that is wrong, 1 for everything else.`;

/** The reference page of the commands. */
export function commandLinePage(): string {
  const sections = listCommands().map(
    ({ name, command }) => `### ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`,
  );
  const singleuser = createCommandLine(() => Promise.resolve());
  return `# Command line

${generatedNote}

## hub

In a checkout, \`npm run hub -- COMMAND\`; where the package is installed, \`hub COMMAND\`. \`npm start -- --config
FILE\` is \`hub start --config FILE\`. Commands for accounts, tokens and lock-outs are performed by the running hub, and by
themselves while none runs.

${signalsAndExitCodes}

${sections.join('\n')}
## hub-singleuser

\`\`\`text
${helpOf(singleuser)}
\`\`\`
`;
}

/** What `--help` prints, in lines of so many characters. */
export function helpOf(command: Command, width = 100): string {
  let help = '';
  command.configureOutput({
    writeOut: (text) => {
      help += text;
    },
    getOutHelpWidth: () => width,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return help.trimEnd();
}
