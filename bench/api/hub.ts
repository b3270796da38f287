import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';
import { until } from '../../test/support/test-hub.ts';
import { startPinned } from '../gateway/pinned-process.ts';
import { type ApiContender, adminToken } from './contender.ts';

export const root = join(import.meta.dirname, '..', '..');
/** How the program is run: the sources, or what `npm run build` made of them. */
export const programs = {
  source: join(root, 'src', 'main.ts'),
  package: join(root, 'dist', 'src', 'main.js'),
} as const;

/** The database of a hub in a folder. */
export const databaseFile = 'hub.sqlite';

/** Starts a hub, on SQLite unless told otherwise. */
export async function startHub(options: {
  readonly core: number;
  /** Holds the database; a later start in the same folder finds the same users. */
  readonly directory: string;
  readonly program: keyof typeof programs;
  readonly nodeOptions?: readonly string[];
  /** In place of SQLite in the folder. */
  readonly databaseUrl?: string;
  /** Beside the service that administrates. */
  readonly services?: readonly object[];
  readonly adminUsers?: readonly string[];
}): Promise<ApiContender> {
  const { core, directory, program, nodeOptions = [] } = options;
  const { databaseUrl = `sqlite:${databaseFile}`, services = [], adminUsers = [] } = options;
  await mkdir(directory, { recursive: true });
  const [port, internalPort] = [await freePort(), await freePort()];
  const file = join(directory, 'hub.config.json');
  await writeFile(
    file,
    JSON.stringify({
      Hub: {
        bind_url: `http://127.0.0.1:${port}/`,
        hub_bind_url: `http://127.0.0.1:${internalPort}`,
        database_url: databaseUrl,
        log_dir: `${databaseFile}-logs`,
        authenticator_class: 'dummy',
        log_level: 'warn',
        services: [{ name: 'bench', admin: true, api_token: adminToken }, ...services],
      },
      DummyAuthenticator: { password: 'test' },
      Authenticator: { allow_all: true, admin_users: adminUsers },
      Spawner: { cmd: ['true'] },
    }),
  );
  const hub = await startPinned({
    core,
    command: [process.execPath, ...nodeOptions, programs[program], 'start', '--config', file],
    port,
    isEndedByTerm: true,
  });
  // It listens before it can answer, with 503 until then.
  await until(
    async () => (await fetch(`http://127.0.0.1:${port}/hub/health`)).ok,
    'hub ready',
  );
  return {
    process: hub,
    url: `http://127.0.0.1:${port}/`,
    apiUrl: `http://127.0.0.1:${internalPort}/hub/api`,
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}
