import { createCommandLine } from '../../src/singleuser/command-line.ts';
import { helpOf, listCommands, signalsAndExitCodes } from './command-line-page.ts';

/** What man(1) shows of each program, by the name of its page. */
export function manPages(version: string): ReadonlyMap<string, string> {
  const commands = listCommands().map(
    ({ name, command }) => `.SS ${roff(name)}\n${verbatim(helpOf(command, width))}`,
  );
  const singleuser = createCommandLine(() => Promise.resolve());
  return new Map([
    [
      'hub.1',
      `${heading('hub', version, 'logins, gateway and servers for what a team runs in the browser')}
.SH SYNOPSIS
.B hub
.I command
.RI [ options ]
.SH DESCRIPTION
${roff(signalsAndExitCodes.replaceAll('`', ''))}
.SH COMMANDS
${commands.join('\n')}
.SH SEE ALSO
.BR hub\\-singleuser (1)
`,
    ],
    [
      'hub-singleuser.1',
      `${heading('hub-singleuser', version, 'the login of a hub before one web app')}
.SH SYNOPSIS
${verbatim(helpOf(singleuser, width))}
.SH SEE ALSO
.BR hub (1)
`,
    ],
  ]);
}

/** Columns of a terminal, without the margin of the page. */
const width = 72;

function heading(name: string, version: string, purpose: string): string {
  const title = name.toUpperCase();
  return `.TH ${roff(title)} 1 "" "hub ${version}"\n.SH NAME\n${roff(name)} \\- ${purpose}`;
}

function verbatim(text: string): string {
  return `.nf\n${roff(text)}\n.fi`;
}

/** Text as it is read, for groff_man(7). */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&');
}
