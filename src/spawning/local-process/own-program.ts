import { extname, join } from 'node:path';

/**
 * Puts this hub's own `hub-singleuser` where a command begins with that name: in a checkout it is on
 * no `PATH`, and an installed one of another version would be the wrong one.
 */
export function withOwnProgram(command: readonly string[]): readonly string[] {
  const [program, ...args] = command;
  if (program !== 'hub-singleuser') return command;
  const source = import.meta.dirname;
  const file = join(source, '..', '..', `singleuser-main${extname(import.meta.filename)}`);
  return [process.execPath, file, ...args];
}
