import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { projectDirectory } from './services.ts';

/** A folder of an operator outside the project, with a configuration file and no packages. */
export interface PluginFolder extends AsyncDisposable {
  readonly directory: string;
  /** Path of a file in the folder. */
  path(file: string): string;
  write(file: string, text: string): Promise<void>;
  configure(config: object): Promise<void>;
  /** Runs `hub` in the folder, to its end. */
  hub(...args: string[]): Promise<PluginFolderRun>;
}

export interface PluginFolderRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The problems of the configuration, a line each. */
  readonly problems: readonly string[];
}

const program = join(projectDirectory, 'src', 'main.ts');

/** Makes an empty folder in which the program is run as an operator runs it. */
export async function createPluginFolder(): Promise<PluginFolder> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-plugin-folder-'));
  const path = (file: string) => join(directory, file);
  const folder: PluginFolder = {
    directory,
    path,
    async write(file, text) {
      await mkdir(dirname(path(file)), { recursive: true });
      await writeFile(path(file), text);
    },
    configure: (config) => folder.write('hub.config.json', JSON.stringify(config)),
    hub: (...args) => {
      const { promise, resolve } = Promise.withResolvers<PluginFolderRun>();
      execFile(process.execPath, [program, ...args], { cwd: directory }, (error, out, err) => {
        const problems = err.split('\n').flatMap((line) => /^ {2}(\S.*)$/.exec(line)?.[1] ?? []);
        const code = error === null ? 0 : Number(error.code);
        resolve({ code, stdout: out, stderr: err, problems });
      });
      return promise;
    },
    async [Symbol.asyncDispose]() {
      await chmod(directory, 0o700);
      await rm(directory, { recursive: true, force: true });
    },
  };
  return folder;
}
