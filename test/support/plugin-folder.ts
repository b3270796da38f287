import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort } from './free-port.ts';
import { type HubProcess, startHubProcess } from './hub-process.ts';
import { programFile } from './program-file.ts';
import { projectDirectory } from './services.ts';
import { endProcessesIn } from './test-hub.ts';

/** A folder of an operator outside the project, with a configuration file and no packages. */
export interface PluginFolder extends AsyncDisposable {
  readonly directory: string;
  /** Path of a file in the folder. */
  path(file: string): string;
  write(file: string, text: string): Promise<void>;
  configure(config: object): Promise<void>;
  /** Runs `hub` in the folder, to its end. */
  hub(...args: string[]): Promise<PluginFolderRun>;
  /** Public base URL of the hub that `start` starts, ends in a slash. */
  readonly url: string;
  /** A request to the API as the administrating service. */
  api(path: string, init?: RequestInit): Promise<Response>;
  /** Starts a hub with a configuration, on free ports and with an administrating service. */
  start(config: PluginFolderConfig): Promise<HubProcess>;
  /** The blocks of code of a page of docs/how-to, in files of the folder, word by word. */
  writeBlocks(page: string, files: readonly string[]): Promise<void>;
}

export interface PluginFolderConfig {
  readonly Hub?: Readonly<Record<string, unknown>>;
  readonly [section: string]: unknown;
}

export interface PluginFolderRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The problems of the configuration, a line each. */
  readonly problems: readonly string[];
}

/**
 * Makes an empty folder in which a program, the one of the project by default, is run as an operator
 * runs it.
 */
export async function createPluginFolder(program = programFile('main')): Promise<PluginFolder> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-plugin-folder-'));
  const path = (file: string) => join(directory, file);
  const [publicPort, internalPort] = [await freePort(), await freePort()];
  const running: HubProcess[] = [];
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
        const code = error === null ? 0 : Number(error.code);
        resolve({ code, stdout: out, stderr: err, problems: problemsIn(err) });
      });
      return promise;
    },
    url: `http://127.0.0.1:${publicPort}/`,
    api: (path, init = {}) =>
      fetch(`http://127.0.0.1:${internalPort}/hub/api${path}`, {
        ...init,
        headers: { authorization: 'token admin-service-token' },
      }),
    async start(config) {
      await folder.configure({
        ...config,
        Hub: {
          ...config.Hub,
          bind_url: folder.url,
          hub_bind_url: `http://127.0.0.1:${internalPort}`,
          services: [
            { name: 'admin-service', admin: true, api_token: 'admin-service-token' },
            ...((config.Hub?.['services'] as unknown[] | undefined) ?? []),
          ],
        },
      });
      const hub = await startHubProcess(['start'], { cwd: directory, program });
      running.push(hub);
      return hub;
    },
    async writeBlocks(page, files) {
      const text = await readFile(join(projectDirectory, 'docs/how-to', page), 'utf8');
      const blocks = [...text.matchAll(/^```(?:ts|js|jsonc?)\n([\s\S]*?)^```$/gm)];
      for (const [index, file] of files.entries()) {
        const [, block = ''] = blocks[index] ?? [];
        // Code says itself in which file it stands; JSON cannot.
        const [, named] = /^\/\/ (\S+)\n/.exec(block) ?? [];
        if ((named ?? file) !== file) throw new Error(`block ${index} of ${page} is ${named}`);
        await folder.write(file, block);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const hub of running) await hub[Symbol.asyncDispose]();
      await endProcessesIn(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
  return folder;
}

/** The problems of a configuration in what a command wrote to standard error, without their places. */
export function problemsIn(stderr: string): readonly string[] {
  return stderr
    .split('\n')
    .flatMap((line) => /^ {2}(?:line \d+:\d+: )?(\S.*)$/.exec(line)?.[1] ?? []);
}
