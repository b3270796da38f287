import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { projectDirectory } from './services.ts';
import { endProcessesIn } from './test-hub.ts';

const run = promisify(execFile);

/** The packages for npm, in a folder outside of the project. */
export interface NpmPackages extends AsyncDisposable {
  readonly directory: string;
  /** As of somebody who is in no project: what `npm run` and the tests say of this one is left out. */
  readonly environment: NodeJS.ProcessEnv;
  /** The packed file of a package. */
  tarball(name: string): string;
  /** Runs a command as it is printed, but takes a package from its file and not from where it is published. */
  shell(command: string, cwd: string, env?: NodeJS.ProcessEnv): Promise<string>;
}

/** Builds and packs the packages. */
export async function buildNpmPackages(): Promise<NpmPackages> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-npm-packages-'));
  const environment = environmentOfShell();
  const tarballs = new Map<string, string>();
  const shell = async (command: string, cwd: string, env = environment) => {
    const words = command.split(' ').map((word) => tarballs.get(word) ?? word);
    const { stdout } = await run('sh', ['-c', words.join(' ')], { cwd, env });
    return stdout;
  };
  await run(process.execPath, [join(projectDirectory, 'scripts', 'build.ts'), directory]);
  for (const name of ['dist', 'dist-client']) {
    const packing = `npm pack ./${name} --json`;
    const [packed] = JSON.parse(await shell(packing, directory)) as [Record<string, string>];
    tarballs.set(packed['name'] ?? '', join(directory, packed['filename'] ?? ''));
  }
  return {
    directory,
    environment,
    tarball: (name) => tarballs.get(name) ?? '',
    shell,
    async [Symbol.asyncDispose]() {
      await endProcessesIn(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function environmentOfShell(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_)|^npm_config_local_prefix$|^NODE_(?!EXTRA_CA_CERTS)/.test(name),
  );
  return {
    ...Object.fromEntries(own),
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    npm_config_prefer_offline: 'true',
    npm_config_fetch_retries: '1',
  };
}
