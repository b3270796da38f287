import { HubError } from '../../platform/errors.ts';
import type { CliInput, CliIo } from './cli-io.ts';

const maxLineLength = 4096;

/** Reads a new password: from a pipe when asked to, else twice from the terminal, without echo. */
export async function askNewPassword(
  { stdin, stderr }: Pick<CliIo, 'stdin' | 'stderr'>,
  options: { readonly isPiped: boolean },
): Promise<string> {
  if (options.isPiped) return await readFirstLine(stdin);
  if (stdin.isTTY !== true) {
    throw new HubError('bad_request', 'Can’t prompt for a password: stdin is not a terminal.', {
      hint: 'Use --password-stdin and pipe the password in.',
    });
  }
  const password = await readHidden(stdin, stderr, 'New password: ');
  const repeated = await readHidden(stdin, stderr, 'The same again: ');
  if (password !== repeated) throw new HubError('bad_request', 'The two passwords differ.');
  return password;
}

/** Asks a question that is answered with y or n; anything but y is no. */
export async function confirm(
  { stdin, stderr }: Pick<CliIo, 'stdin' | 'stderr'>,
  question: string,
): Promise<boolean> {
  if (stdin.isTTY !== true) return false;
  stderr.write(`${question} [y/N] `);
  return /^y(es)?$/i.test((await readFirstLine(stdin)).trim());
}

/** Asks before something is deleted, unless `yes` stands for the answer. Throws `bad_request` where nobody agrees. */
export async function confirmDeletion(
  io: Pick<CliIo, 'stdin' | 'stderr'>,
  what: string,
  { yes }: { readonly yes?: boolean },
): Promise<void> {
  if (yes === true || (await confirm(io, `Delete ${what}?`))) return;
  throw new HubError('bad_request', 'Nothing was deleted.', {
    hint: 'Use --yes to delete without being asked.',
  });
}

async function readFirstLine(stdin: CliInput): Promise<string> {
  // A megabyte that a running hub has no use for.
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: stdin, terminal: false });
  try {
    for await (const line of lines) {
      if (line.length > maxLineLength) throw new HubError('bad_request', 'The line is too long.');
      return line;
    }
    return '';
  } finally {
    lines.close();
  }
}

/** Reads a line key by key in raw mode, where the terminal itself shows nothing. */
async function readHidden(
  stdin: CliInput,
  stderr: CliIo['stderr'],
  prompt: string,
): Promise<string> {
  stderr.write(prompt);
  stdin.setRawMode?.(true);
  stdin.setEncoding('utf8');
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let typed = '';

  function onData(keys: string): void {
    const [, line = '', end = ''] = /^([^\r\n\u0003\u0004]*)([\r\n\u0003\u0004]?)/.exec(keys) ?? [];
    for (const key of line) {
      if (key === '\u007F' || key === '\b') typed = [...typed].slice(0, -1).join('');
      else if (key === '\u0015') typed = '';
      else if (key >= ' ' && typed.length < maxLineLength) typed += key;
    }
    if (end === '') return;
    stdin.pause();
    // What was typed or pasted ahead answers the next question.
    const rest = keys.slice(line.length + 1);
    if (rest !== '') stdin.unshift(rest);
    if (end === '\u0003' || end === '\u0004') reject(new HubError('bad_request', 'Cancelled.'));
    else resolve(typed);
  }
  const onEnd = (): void => reject(new HubError('bad_request', 'Cancelled.'));

  stdin.on('data', onData);
  stdin.once('end', onEnd);
  stdin.resume();
  try {
    return await promise;
  } finally {
    stdin.off('data', onData);
    stdin.off('end', onEnd);
    stdin.setRawMode?.(false);
    stderr.write('\n');
  }
}
