import { delimiter, join } from 'node:path';
import { programFile, programFolder } from '../../platform/files/program-folder.ts';

/** Where programs are searched for without a `PATH`. */
const defaultPath = '/usr/local/bin:/usr/bin:/bin';

/**
 * Puts this hub's `hub-singleuser` where a command begins with that name: in a checkout it is on no
 * `PATH`, and an installed one of another version would be the wrong one.
 */
export function withSingleuserProgram(command: readonly string[]): readonly string[] {
  const [program, ...args] = command;
  if (program !== 'hub-singleuser') return command;
  return [process.execPath, programFile('src/singleuser-main'), ...args];
}

/** Lets a shell or any other program that a server runs find this hub's `hub-singleuser`. */
export function withSingleuserOnPath(
  environment: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    ...environment,
    PATH: [join(programFolder, 'bin'), environment['PATH'] ?? defaultPath].join(delimiter),
    HUB_SINGLEUSER_NODE: process.execPath,
  };
}

/** Whether a word of a command is `hub-singleuser`, also as the file that it is in the sources. */
const guard = /(?:^|\/)(?:hub-singleuser|singleuser-main\.[jt]s)$/;

/** The same within a word that a shell splits, up to the `--` before the command of the app. */
const guardInScript = /(?:^|[\s/])(?:hub-singleuser|singleuser-main\.[jt]s)\s(?:.*\s)?--\s/s;

/**
 * Replaces placeholders in a command, but not behind the `--` of a guard: there stand those of the app,
 * which the guard fills in.
 */
export function fillGuardedCommand(
  command: readonly string[],
  fill: (text: string) => string,
): string[] {
  const separatorAt = command.indexOf('--');
  const isGuarded = command.slice(0, separatorAt).some((word) => guard.test(word));
  return command.map((word, index) => {
    if (isGuarded && index > separatorAt) return word;
    const [before = ''] = guardInScript.exec(word) ?? [];
    const end = before === '' ? word.length : word.indexOf(before) + before.length;
    return fill(word.slice(0, end)) + word.slice(end);
  });
}
