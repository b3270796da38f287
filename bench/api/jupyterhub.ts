import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/support/free-port.ts';
import { startPinned } from '../gateway/pinned-process.ts';
import { type ApiContender, adminToken } from './contender.ts';

const program = 'jupyterhub';
const databaseFile = 'jupyterhub.sqlite';

/** The version that is installed. */
export function jupyterHubVersion(): string {
  return execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
}

/**
 * Starts JupyterHub as Debian packages it, with SQLite. Its API is asked where its servers reach it,
 * past its proxy, which would only cost it time.
 */
export async function startJupyterHub(options: {
  readonly core: number;
  /** Holds the database; a later start in the same folder finds the same users. */
  readonly directory: string;
}): Promise<ApiContender> {
  const { core, directory } = options;
  await mkdir(directory, { recursive: true });
  const [port, hubPort, proxyApiPort] = [await freePort(), await freePort(), await freePort()];
  const manifest = import.meta.resolve('configurable-http-proxy/package.json');
  const proxy = fileURLToPath(new URL('bin/configurable-http-proxy', manifest));
  const file = join(directory, 'jupyterhub_config.py');
  const settings: readonly (readonly [string, unknown])[] = [
    ['JupyterHub.bind_url', `http://127.0.0.1:${port}/`],
    ['JupyterHub.hub_bind_url', `http://127.0.0.1:${hubPort}`],
    ['JupyterHub.authenticator_class', 'dummy'],
    ['JupyterHub.spawner_class', 'simple'],
    ['JupyterHub.db_url', `sqlite:///${join(directory, databaseFile)}`],
    ['JupyterHub.cookie_secret_file', join(directory, 'cookie_secret')],
    ['JupyterHub.log_level', 'WARN'],
    ['JupyterHub.services', [{ name: 'bench', api_token: adminToken }]],
    [
      'JupyterHub.load_roles',
      [
        {
          name: 'bench',
          services: ['bench'],
          scopes: ['admin:users', 'admin:servers', 'admin:groups', 'list:users', 'tokens'],
        },
      ],
    ],
    ['ConfigurableHTTPProxy.command', [process.execPath, proxy]],
    ['ConfigurableHTTPProxy.api_url', `http://127.0.0.1:${proxyApiPort}`],
    ['ConfigurableHTTPProxy.pid_file', join(directory, 'proxy.pid')],
  ];
  await writeFile(
    file,
    settings.map(([name, value]) => `c.${name} = ${JSON.stringify(value)}\n`).join(''),
  );
  const hub = await startPinned({
    core,
    command: [program, '--config', file],
    port,
    isEndedByTerm: true,
  });
  return {
    process: hub,
    apiUrl: `http://127.0.0.1:${hubPort}/hub/api`,
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}

/**
 * Adds users to the database of a running JupyterHub, each a copy of one that its API has made: through the
 * API, ten thousand take minutes.
 */
export function copyUser(directory: string, name: string, names: readonly string[]): void {
  using database = new DatabaseSync(join(directory, databaseFile), { timeout: 30_000 });
  const { id, ...columns } = database
    .prepare('select * from users where name = ?')
    .get(name) as Record<string, string | number | null>;
  const keys = Object.keys(columns);
  const insert = database.prepare(
    `insert into users (${keys.join()}) values (${keys.map(() => '?').join()})`,
  );
  const giveRoles = database.prepare(
    'insert into user_role_map (user_id, role_id) select ?, role_id from user_role_map where user_id = ?',
  );
  database.exec('begin immediate');
  for (const copy of names) {
    const values = { ...columns, name: copy, cookie_id: randomUUID() };
    const { lastInsertRowid } = insert.run(...Object.values(values));
    giveRoles.run(lastInsertRowid, id ?? null);
  }
  database.exec('commit');
}
