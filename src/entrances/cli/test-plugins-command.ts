import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { StartupError } from '../../platform/errors.ts';
import { programFile } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';

/** Adds `hub test-plugins`. */
export function addTestPluginsCommand(program: Command, io: CliIo): void {
  program
    .command('test-plugins')
    .description(
      'run the tests of plugins (*.test.ts, .js or .mjs) with the test runner of Node.js',
    )
    .argument('[folder]', 'folder of plugins', 'plugins')
    .action(async (given: string) => {
      const folder = realFolder(resolve(io.directory ?? '.', given));
      const files = globSync('**/*.test.{ts,js,mjs}', {
        cwd: folder,
        exclude: ['**/node_modules/**'],
      });
      if (files.length === 0) {
        throw new StartupError(
          `There is no test in ${folder}. A test is a file such as ${join(folder, 'badges.test.ts')}.`,
        );
      }
      const preload = pathToFileURL(programFile('src/plugin/host/provide-to-folder'));
      preload.searchParams.set('folder', folder);
      const args = ['--import', preload.href, '--test', '--test-reporter=spec'];
      const child = spawn(process.execPath, [...args, ...files.map((file) => join(folder, file))], {
        env: io.env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stdout.setEncoding('utf8').on('data', (text: string) => void io.stdout.write(text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => void io.stderr.write(text));
      const [code] = await once(child, 'close');
      if (code !== 0) throw new StartupError('The tests of the plugins failed.');
    });
}

/** Modules are known by where they really are. */
function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    throw new StartupError(`There is no folder ${path}.`);
  }
}
