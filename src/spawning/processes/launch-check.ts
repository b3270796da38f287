import { constants } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { type Text, text } from '../../platform/texts/text.ts';

/**
 * Says why a command cannot be started, in words that name the cause; undefined when nothing is wrong.
 * `spawn` itself says ENOENT for a missing program and for a missing directory alike.
 */
export async function explainLaunchProblem({
  command,
  workingDirectory,
  path,
  mayLookAt = async () => true,
}: {
  readonly command: readonly string[];
  readonly workingDirectory: string;
  /** Value of PATH. */
  readonly path: string | undefined;
  /** Whether the hub may look at a place; what is wrong there shows in the output of the command. */
  readonly mayLookAt?: (place: string) => Promise<boolean>;
}): Promise<Text | undefined> {
  const [program] = command;
  if (program === undefined || program === '') return text`the command is empty`;
  if (command.some((argument) => argument.includes('\0')))
    return text`the command holds a NUL character`;

  if (await mayLookAt(workingDirectory)) {
    const directory = await stat(workingDirectory).catch(() => undefined);
    if (directory === undefined) return text`the directory ${workingDirectory} does not exist`;
    if (!directory.isDirectory()) return text`${workingDirectory} is not a directory`;
  }

  const isPath = program.includes('/');
  const candidates = isPath
    ? [resolve(workingDirectory, program)]
    : (path ?? '/usr/local/bin:/usr/bin:/bin')
        .split(delimiter)
        .map((folder) => resolve(workingDirectory, join(folder, program)));
  let problem = isPath
    ? text`command not found: ${program}`
    : text`command not found in PATH: ${program}`;
  for (const candidate of candidates) {
    if (!(await mayLookAt(candidate))) return undefined;
    const found = await stat(candidate).catch(() => undefined);
    if (found === undefined) continue;
    if (found.isDirectory()) problem = text`${candidate} is a directory, not a program`;
    else if (await isExecutable(candidate))
      return explainScriptProblem(program, candidate, mayLookAt);
    else problem = text`permission denied: ${candidate} is not executable`;
  }
  return problem;
}

/** A script names the program that runs it in its first line, at most 255 characters (execve(2)). */
async function explainScriptProblem(
  program: string,
  file: string,
  mayLookAt: (place: string) => Promise<boolean>,
): Promise<Text | undefined> {
  const [, interpreter] = /^#![ \t]*([^\s\0]+)/.exec(await readStart(file)) ?? [];
  if (interpreter === undefined || !(await mayLookAt(interpreter))) return undefined;
  if ((await stat(interpreter).catch(() => undefined)) !== undefined) return undefined;
  return text`${program} or the interpreter named in its first line does not exist`;
}

async function readStart(file: string): Promise<string> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } catch {
    // It may be executable and not readable.
    return '';
  }
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
