import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';

/**
 * Says why a command cannot be started, in words that name the cause; undefined when nothing is wrong.
 * `spawn` itself says ENOENT for a missing program and for a missing directory alike.
 */
export async function explainLaunchProblem(
  command: readonly string[],
  workingDirectory: string,
  path: string | undefined,
): Promise<string | undefined> {
  const [program] = command;
  if (program === undefined || program === '') return 'the command is empty';
  if (command.some((argument) => argument.includes('\0')))
    return 'the command holds a NUL character';

  const directory = await stat(workingDirectory).catch(() => undefined);
  if (directory === undefined) return `the directory ${workingDirectory} does not exist`;
  if (!directory.isDirectory()) return `${workingDirectory} is not a directory`;

  const isPath = program.includes('/');
  const candidates = isPath
    ? [resolve(workingDirectory, program)]
    : (path ?? '/usr/local/bin:/usr/bin:/bin')
        .split(delimiter)
        .map((folder) => resolve(workingDirectory, join(folder, program)));
  let problem = isPath ? `command not found: ${program}` : `command not found in PATH: ${program}`;
  for (const candidate of candidates) {
    const found = await stat(candidate).catch(() => undefined);
    if (found === undefined) continue;
    if (found.isDirectory()) problem = `${candidate} is a directory, not a program`;
    else if (await isExecutable(candidate)) return undefined;
    else problem = `permission denied: ${candidate} is not executable`;
  }
  return problem;
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
