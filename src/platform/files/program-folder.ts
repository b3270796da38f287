import { existsSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';

/** Folder of the program, with its package.json: that of its sources, or of the package made from them. */
export const programFolder = findPackage(import.meta.dirname);

/** Path of a module that is started by its path, given without its extension: `src/main`. */
export function programFile(module: string): string {
  return join(programFolder, `${module}${extname(import.meta.filename)}`);
}

/** How deep a module stands depends on how the program was built. */
function findPackage(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error(`${import.meta.dirname} belongs to no package`);
  return findPackage(parent);
}

let called = 'hub';

/** Says, at the start of the process, as what program it was started: from its sources, the packages of a folder, or the path. */
export function startedAs(program: string, folder: string): void {
  // npm knows the script in the folder of the sources alone.
  if (program.endsWith('.ts'))
    called = folder === programFolder ? 'npm run hub --' : `node ${program}`;
  else called = program.includes('/node_modules/') ? 'npx hub' : 'hub';
}

/** A command as it is typed where the program was started: `npx hub check`. */
export function hubCommand(words: string): string {
  return `${called} ${words}`;
}
