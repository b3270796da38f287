import { enableCompileCache } from 'node:module';
import { extname, join } from 'node:path';
import { programFolder } from '../../platform/files/program-folder.ts';

/**
 * Keeps the program compiled and without its types from one start to the next, which makes the start
 * two to three times as fast and spares the memory of the type stripper. To be called before the program is
 * loaded. Worker threads of the process find the cache by NODE_COMPILE_CACHE in its environment.
 *
 * The cache stands among the packages of the program, where only those can write who could change the program
 * itself, and never in the temporary folder, where Node.js has it by default: what is in it is run. Where
 * the folder cannot be written, nothing is kept. The published package has no types to strip, and what is kept
 * would take more memory than it saves time.
 */
export function keepCompiled(environment: Record<string, string | undefined>): void {
  if (extname(import.meta.filename) !== '.ts') return;
  if (environment['NODE_COMPILE_CACHE'] !== undefined) return;
  const directory = join(programFolder, 'node_modules', '.cache', 'hub');
  const result = enableCompileCache(directory);
  if (result.directory !== undefined) environment['NODE_COMPILE_CACHE'] = directory;
}
