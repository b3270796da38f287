import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useCommandLine } from '../support/command-line.ts';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { queryPostgres } from '../support/postgres.ts';
import { pathOf, requires } from '../support/requires.ts';

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures', 'jupyter');

describe.runIf(requires('python3-jupyterhub'))('a jupyterhub_config.py', () => {
  const { hub, directory } = useCommandLine();
  const from = `--from ${join(fixtures, 'old_config.py')} --config new.json`;

  test('is run by its Python and written as a configuration that the hub takes', async () => {
    const python = `--python ${pathOf('python3-jupyterhub')}`;
    const { stdout, stderr, exitCode } = await hub(`import jupyterhub ${from} ${python}`);
    expect(stderr).toBe('');
    expect(stdout).toContain('old_config.py was run by');
    expect(stdout).toMatch(/Spawner\.pre_spawn_hook: it is Python \(.*before\); write a hook/);
    expect(stdout).toMatch(/JupyterHub\.template_paths: .*; pages are changed by/);
    expect(stdout).not.toContain('To be corrected');
    expect(exitCode).toBe(0);
    const file = join(directory(), 'new.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      Hub: {
        bind_url: 'http://127.0.0.1:8123/jupyter/',
        hub_bind_url: 'http://127.0.0.1:8124',
        load_roles: [{ name: 'grader', users: ['ada'] }],
        services: [{ name: 'wiki', api_token: 'wiki-token' }],
        load_groups: [
          { name: 'course', users: ['ada', 'bob'] },
          { name: 'staff', users: ['ada'], properties: { floor: 2 } },
        ],
        log_level: 'debug',
      },
      Authenticator: { admin_users: ['ada'], allowed_users: ['bob'] },
      Spawner: { idle_timeout_seconds: 1800, mem_limit: '1G', environment: { EDITOR: 'vi' } },
    });

    const again = await hub(`import jupyterhub ${from} ${python}`);
    expect(again.stderr).toContain('new.json is there already');
    const without = await hub(`import jupyterhub ${from} --python /nowhere/python3`);
    expect(without.stderr).toContain('There is no program /nowhere/python3');
  });
});

/** Asks by the library of JupyterHub's services who has a token, with that token. */
const client = `
import json, sys
from jupyterhub.services.auth import HubAuth
print(json.dumps([
    HubAuth(api_url=sys.argv[1], api_token=token).user_for_token(token)["name"]
    for token in sys.argv[2:]
]))
`;

/** The database of an old JupyterHub, and what can be done to it behind its back. */
interface OldDatabase {
  readonly url: string;
  /** Everything in it. */
  contents(): Promise<unknown>;
  change(statement: string): Promise<unknown>;
}

function sqliteDatabase(directory: string): OldDatabase {
  const file = join(directory, 'jupyterhub.sqlite');
  return {
    url: `sqlite:///${file}`,
    contents: async () => readFileSync(file),
    async change(statement) {
      using database = new DatabaseSync(file);
      database.exec(statement);
    },
  };
}

function postgresDatabase(url: string): OldDatabase {
  const ask = (statement: string) => queryPostgres(url, statement);
  return {
    url: url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:'),
    async contents() {
      const tables = await ask("select tablename from pg_tables where schemaname = 'public'");
      const names = tables.map(({ tablename }) => String(tablename)).sort();
      return Promise.all(
        names.map((name) => ask(`select * from ${name} as row order by row::text`)),
      );
    },
    change: ask,
  };
}

describe.runIf(requires('python3-jupyterhub'))('the SQLite file of a JupyterHub', () => {
  testImport(async (directory) => sqliteDatabase(directory));
});

describe.runIf(requires('python3-jupyterhub', 'python3-psycopg2', 'postgres'))(
  'the PostgreSQL database of a JupyterHub',
  () => {
    const postgres = usePostgres();
    testImport(async () => postgresDatabase(await postgres().createEmptyDatabase()));
  },
);

function testImport(create: (directory: string) => Promise<OldDatabase>): void {
  const python = async (...args: string[]): Promise<unknown> => {
    const { stdout } = await promisify(execFile)(pathOf('python3-jupyterhub'), args);
    return JSON.parse(stdout);
  };
  let folder: HubFolder;
  let directory: string;
  let old: OldDatabase;
  let tokens: Record<string, string>;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'jupyterhub-'));
    old = await create(directory);
    tokens = (await python(join(fixtures, 'old_hub.py'), old.url)) as typeof tokens;
    const services = [{ name: 'wiki', api_token: 'wikis-configured-token' }];
    folder = await createHubFolder({ Hub: { services } });
  });
  afterAll(async () => {
    await folder?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  const importIt = (...more: string[]) =>
    folder.command(['import', 'jupyterhub', '--database', old.url, ...more]);
  const report = async (...more: string[]) => {
    const { stdout, stderr } = await importIt('--json', ...more);
    expect(stderr).toBe('');
    return JSON.parse(stdout) as {
      taken: Record<string, Record<string, number>>;
      changed: { what: string }[];
      left: { what: string }[];
    };
  };
  const doctor = async () => (await folder.command(['doctor'])).stdout;

  test('is taken over once, and its clients go on with the tokens they have', async () => {
    const before = await old.contents();
    expect((await importIt('--dry-run')).stdout).toMatch(
      /^Would take over:.* 4 API tokens \(4 new\)/s,
    );
    expect(existsSync(join(folder.directory, 'hub.sqlite'))).toBe(false);

    const { taken, changed, left } = await report();
    const added = Object.entries(taken).map(([kind, { found, added }]) => [kind, found, added]);
    expect(added).toEqual([
      ['users', 3, 3],
      ['groups', 1, 1],
      ['members', 2, 2],
      ['roles', 1, 1],
      ['assignments', 3, 3],
      ['tokens', 4, 4],
      ['services', 0, 0],
      ['servers', 2, 2],
      ['volumes', 0, 0],
      ['shares', 0, 0],
      ['passwords', 0, 0],
      ['secondFactors', 0, 0],
    ]);
    expect(changed.map(({ what }) => what)).toEqual([
      'user Bob Smith → bob smith',
      'user carol@EXAMPLE.org → carol@example.org',
      'server bob smith/gpu box → bob smith/gpu-box',
    ]);
    expect(left.map(({ what }) => what)).toEqual(['service gone, with its tokens and roles']);
    const again = Object.values((await report('--update')).taken);
    expect(again.every((each) => each['added'] === 0 && each['changed'] === 0)).toBe(true);
    expect(again.every((each) => each['removed'] === 0)).toBe(true);
    expect(await old.contents()).toEqual(before);
    expect(await doctor()).toMatch(/^ok +tokens of JupyterHub +4 of them were not used here yet$/m);

    await using _hub = await folder.start();
    expect((await importIt()).stderr).toContain('stop it first');
    const names = await python('-c', client, folder.apiUrl, ...Object.values(tokens));
    expect(names).toEqual(['ada', 'bob smith', 'carol@example.org', 'wiki']);
    expect(await doctor()).not.toContain('tokens of JupyterHub');
    const ask = async (path: string, token: string | undefined) => {
      const headers = { authorization: `token ${token}` };
      return (await fetch(`${folder.apiUrl}${path}`, { headers })).json();
    };
    expect(await ask('/users/bob%20smith?include_stopped_servers', tokens['ada'])).toMatchObject({
      admin: false,
      groups: ['course'],
      roles: ['grader', 'user'],
      servers: { 'gpu-box': { display_name: 'gpu box', stopped: true } },
    });
    expect(await ask('/users/bob%20smith', tokens['bob'])).toEqual({
      kind: 'user',
      name: 'bob smith',
      admin: false,
    });
  });

  test('comes with the passwords of TLJH, and the users who have one alone', async () => {
    const file = join(directory, 'passwords.dbm');
    const hash = '$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q';
    const write =
      'import dbm, sys\nfile = dbm.open(sys.argv[1], "c")\nfor name in "ada", "dora": file[name] = sys.argv[2]\nfile.close()\nprint("{}")';
    await python('-c', write, file, hash);
    const { taken } = await report(
      '--dry-run',
      '--passwords',
      file,
      '--python',
      pathOf('python3-jupyterhub'),
    );
    expect(taken['passwords']).toMatchObject({ found: 2, added: 2 });
    expect(taken['users']).toMatchObject({ found: 4, added: 1 });
    const missing = await importIt('--passwords', 'native');
    expect(missing.stderr).toContain('no table users_info');
  });

  test('is followed by --update until the day of the move', async () => {
    await old.change(`update users set admin = true where name = 'carol@EXAMPLE.org';
      delete from api_tokens where note = 'script';
      delete from user_group_map where user_id = (select id from users where name = 'ada');`);
    const untouched = Object.values((await report()).taken);
    expect(untouched.every((each) => each['changed'] === 0 && each['removed'] === 0)).toBe(true);
    const { taken } = await report('--update');
    expect(taken['users']).toMatchObject({ changed: 1 });
    expect(taken['tokens']).toMatchObject({ removed: 1, added: 0 });
    expect(taken['members']).toMatchObject({ removed: 1 });
  });

  test.each([
    [
      'with two users who would be one',
      "insert into users (name, admin, cookie_id) values ('bob smith', false, 'x')",
      '"Bob Smith", "bob smith"',
    ],
    ['that lacks a table', 'alter table spawners rename to lost', 'there is no table spawners'],
    ['of a newer JupyterHub', "update alembic_version set version_num = 'f00'", '"f00"'],
    ['of another program', 'drop table alembic_version', 'no database of a JupyterHub'],
  ])('%s is refused', async (_, statement, words) => {
    await old.change(statement);
    const { code, stderr } = await importIt('--dry-run');
    expect(stderr).toContain(words);
    expect(code).toBe(1);
  });
}
