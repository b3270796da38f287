import { spawnSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { inspect } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../../../test/support/databases.ts';
import { hasPostgres, queryPostgres } from '../../../test/support/postgres.ts';
import { Secret } from '../config/secret.ts';
import { StartupError } from '../errors.ts';
import { tablesOfVersion } from './backup-rows.ts';
import { backUpDatabase, restoreDatabase } from './database-backup.ts';
import { newestVersion } from './migrate.ts';
import { openDatabase } from './open-database.ts';

const fixtures = join(import.meta.dirname, '../../../fixtures/databases');
const fixture = join(fixtures, '0001.sql');
const releases = globSync('*.sqlite.sql', { cwd: fixtures }).map((name) =>
  basename(name, '.sqlite.sql'),
);
const passphrase = new Secret('correct horse');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hub-backup-'));
});
afterEach(async () => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const location = (url: string) => ({ url, directory: folder });
const open = (url: string) =>
  openDatabase(url, { directory: folder, log: pino({ level: 'silent' }) });

/** Makes an SQLite database with a row in each table of the first version, and what is hard to write down. */
async function makeDatabase(version: number): Promise<void> {
  {
    using first = new DatabaseSync(at('hub.sqlite'));
    first.exec(readFileSync(fixture, 'utf8'));
    first.exec('update users set last_activity_at = 9007199254740993');
    first.exec(`insert into settings values ('odd', '''\\u2028"[\u2028' || char(10) || '😀')`);
    first.exec(`delete from audit where id = (select max(id) from audit)`);
  }
  if (version < newestVersion()) return;
  await using _ = await open('sqlite:hub.sqlite');
  using latest = new DatabaseSync(at('hub.sqlite'));
  latest.exec(
    `insert into usage_totals values ('user', 'u', 'day', 1, 'ada', 0.1 + 0.2, 3, 1e300, 0, -0.7)`,
  );
}

/** The rows of an SQLite database, to the last bit, and what stands beside its tables. */
function contentOf(name: string): Record<string, string[]> {
  using database = new DatabaseSync(at(name), { readOnly: true });
  const tables = database.prepare(`select name from sqlite_master where type = 'table'`).all();
  const others = database.prepare(`select type || name as part from sqlite_master order by part`);
  const parts = others.all().map(({ part }) => String(part));
  return Object.fromEntries([
    ['sqlite_master', parts],
    ...tables.map((table): [string, string[]] => {
      const rows = database.prepare(`select * from "${table['name']}"`);
      rows.setReadBigInts(true);
      const lines = rows.all().map((row) => inspect(row, { breakLength: Infinity }));
      return [String(table['name']), lines.toSorted()];
    }),
  ]);
}

describe.skipIf(!hasPostgres())('a backup', () => {
  const postgres = usePostgres();

  test.each([27, newestVersion()])(
    'of version %s goes from SQLite to PostgreSQL and back with nothing changed',
    async (version) => {
      await makeDatabase(version);
      await backUpDatabase(location('sqlite:hub.sqlite'), at('first'), passphrase);
      const url = await postgres().createEmptyDatabase();
      await restoreDatabase(location(url), at('first'), { passphrase });
      await backUpDatabase(location(url), at('second'), passphrase);
      await restoreDatabase(location('sqlite:back.sqlite'), at('second'), { passphrase });
      expect(contentOf('back.sqlite')).toEqual(contentOf('hub.sqlite'));
      expect(readdirSync(folder).filter((name) => /part|plain|replaced/.test(name))).toEqual([]);
      expect(contentOf('back.sqlite')['sqlite_sequence']?.join()).toContain('audit');

      await using hub = await open(url);
      await hub.kysely.insertInto('audit_arrivals').values({ entry: '[]', users: null }).execute();
      expect(
        await queryPostgres(url, 'select nextval(pg_get_serial_sequence($1, $2))::int as next', [
          'audit',
          'id',
        ]),
      ).toEqual([{ next: 2 }]);
    },
  );

  test.each([27, newestVersion()])(
    'of version %s is restored without its tokens, logins, codes and links',
    async (version) => {
      await makeDatabase(version);
      await backUpDatabase(location('sqlite:hub.sqlite'), at('first'));
      const url = await postgres().createEmptyDatabase();
      const toPostgres = await restoreDatabase(location(url), at('first'), { endsTokens: true });
      await backUpDatabase(location(url), at('second'));
      await restoreDatabase(location('sqlite:back.sqlite'), at('second'));
      const toSqlite = await restoreDatabase(location('sqlite:hub.sqlite'), at('first'), {
        endsTokens: true,
      });
      expect(toSqlite).toEqual({ ...toPostgres, kept: expect.stringContaining('replaced') });
      const { kept = '' } = toSqlite;
      const before = contentOf(basename(kept));
      const after = contentOf('hub.sqlite');
      expect(after).toEqual(contentOf('back.sqlite'));
      const changed = Object.keys(before).filter(
        (table) => `${before[table]}` !== `${after[table]}`,
      );
      const ended = [
        'access_tokens',
        'authorization_codes',
        'invitations',
        'login_sessions',
        'share_codes',
      ];
      expect(changed.toSorted()).toEqual([...ended, 'keyv', 'runtime_services'].toSorted());
      expect(ended.flatMap((table) => after[table])).toEqual([]);
      const rows = [...ended, 'runtime_services'].flatMap((table) => before[table] ?? []);
      expect(toSqlite.endedCount).toBe(rows.length);
    },
  );

  test.each(releases)(
    'of a database that %s left is the same from both databases',
    async (release) => {
      {
        using past = new DatabaseSync(at('hub.sqlite'));
        past.exec(readFileSync(join(fixtures, `${release}.sqlite.sql`), 'utf8'));
      }
      const before = contentOf('hub.sqlite');
      expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
      const url = await postgres().createEmptyDatabase();
      await queryPostgres(url, readFileSync(join(fixtures, `${release}.postgres.sql`), 'utf8'));
      for (const each of ['sqlite:hub.sqlite', 'sqlite:new.sqlite', url]) {
        await using _ = await open(each);
      }

      const after = contentOf('hub.sqlite');
      expect(after['sqlite_master']).toEqual(contentOf('new.sqlite')['sqlite_master']);
      await backUpDatabase(location(url), at('backup'));
      await restoreDatabase(location('sqlite:back.sqlite'), at('backup'));
      expect(contentOf('back.sqlite')).toEqual(after);
      const { hub_schema: _, sqlite_master: __, ...rows } = before;
      const values = (lines: readonly string[] = []) => lines.map((line) => line.slice(0, -2));
      for (const [table, lines] of Object.entries(rows))
        for (const [index, value] of values(lines).entries())
          expect(after[table]?.[index], table).toContain(value);
    },
  );

  test('that cannot be restored changes nothing', async () => {
    await makeDatabase(newestVersion());
    const full = await postgres().createDatabase();
    const empty = await postgres().createEmptyDatabase();
    await backUpDatabase(location('sqlite:hub.sqlite'), at('sqlite'));
    await restoreDatabase(location(empty), at('sqlite'));
    await backUpDatabase(location(empty), at('good'));
    const good = await readFile(at('good'));
    const text = gunzipSync(good).toString();
    const bad = {
      short: [good.subarray(0, -100), 'is damaged or no backup of a hub'],
      newer: [
        gzipSync(text.replace(`"version":${newestVersion()}`, '"version":999')),
        'start the newer hub',
      ],
      empty: [gzipSync(''), 'it is empty'],
      orphan: [
        gzipSync(text.replace(/^.*"sign_count".*$/m, '{"id":"1","user_id":"nobody"}')),
        'cannot be used',
      ],
      text: [Buffer.from('no backup'), 'damaged or no database of a hub'],
    } as const;
    const other = await postgres().createEmptyDatabase();
    for (const [name, [bytes, problem]] of Object.entries(bad)) {
      await writeFile(at(name), bytes);
      await expect(restoreDatabase(location(other), at(name)), name).rejects.toThrow(problem);
      const before = contentOf('hub.sqlite');
      await expect(
        restoreDatabase(location('sqlite:hub.sqlite'), at(name)),
        name,
      ).rejects.toThrow();
      expect(contentOf('hub.sqlite')).toEqual(before);
    }
    expect(await queryPostgres(other, `select from pg_tables where schemaname = 'public'`)).toEqual(
      [],
    );
    await expect(restoreDatabase(location(full), at('good'))).rejects.toThrow('there are tables');
    await expect(backUpDatabase(location(other), at('none'))).rejects.toThrow(
      'holds no tables of a hub',
    );
    await expect(backUpDatabase(location(full), at('no/folder'))).rejects.toThrow('ENOENT');
    expect(readdirSync(folder).filter((name) => /part|plain|none|replaced/.test(name))).toEqual([]);
  });
});

test('has columns of types that JSON holds', async () => {
  await makeDatabase(newestVersion());
  using database = new DatabaseSync(at('hub.sqlite'), { readOnly: true });
  const types = (await tablesOfVersion(newestVersion())).flatMap((table) =>
    database
      .prepare('select lower(type) as type from pragma_table_info(?)')
      .all(table)
      .map(({ type }) => type),
  );
  expect(new Set(types)).toEqual(new Set(['text', 'integer', 'bigint', 'double precision']));
});

test('an encrypted one is restored from where nothing can be written, also after a restore that was killed', async () => {
  await makeDatabase(newestVersion());
  const before = contentOf('hub.sqlite');
  await mkdir(at('elsewhere'));
  await backUpDatabase(location('sqlite:hub.sqlite'), at('elsewhere/sealed'), passphrase);
  // Root may write to a folder of any mode, but to none of these names.
  await mkdir(at('elsewhere/sealed.plain'));
  await restoreDatabase(location('sqlite:hub.sqlite'), at('elsewhere/sealed'), { passphrase });
  expect(contentOf('hub.sqlite')).toEqual(before);
  expect(readdirSync(folder).filter((name) => name.endsWith('.plain'))).toEqual([]);
  const lost = restoreDatabase(location('sqlite:no/hub.sqlite'), at('elsewhere/sealed'), {
    passphrase,
  });
  await expect(lost).rejects.toThrow(StartupError);
  await expect(lost).rejects.toThrow('sealed cannot be restored: ENOENT');
});

test('at every step of a restore there is a whole database, whoever kills it then', async () => {
  await makeDatabase(newestVersion());
  const before = contentOf('hub.sqlite');
  await backUpDatabase(location('sqlite:hub.sqlite'), at('first'));
  for (let step = 0, killed = true; killed; step += 1) {
    // What is committed last is in the log alone, as a hub that was killed leaves it.
    runNode(`${leaveLog} process.kill(process.pid, 'SIGKILL')`);
    const { signal, status } = runNode(`${killAtStep(step)} ${restore}`);
    killed = signal === 'SIGKILL';
    if (!killed) expect(status).toBe(0);
    const { settings: _, ...after } = contentOf('hub.sqlite');
    const { settings: __, ...expected } = before;
    expect(after, `step ${step}`).toEqual(expected);
    if (!killed) expect(step).toBeGreaterThan(2);
  }
  expect(contentOf('hub.sqlite')).toEqual(before);
  const kept = readdirSync(folder).findLast((name) => name.includes('.replaced-')) ?? '';
  expect(contentOf(kept)['settings']?.join()).toContain('the last word');
});

const runNode = (script: string) =>
  spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });

const leaveLog = `
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync('hub.sqlite');
  database.exec("pragma journal_mode = wal; insert or replace into settings values ('x', 'the last word')");`;

/** Kills the process before it changes names for the n-th time. */
const killAtStep = (step: number) => `
  const { default: files } = await import('node:fs/promises');
  const { syncBuiltinESMExports } = await import('node:module');
  let left = ${step};
  for (const name of ['link', 'rename', 'rm']) {
    const real = files[name];
    files[name] = (...args) => {
      if (left-- === 0) process.kill(process.pid, 'SIGKILL');
      return real(...args);
    };
  }
  syncBuiltinESMExports();`;

const restore = `
  const { restoreDatabase } = await import('${join(import.meta.dirname, 'database-backup.ts')}');
  await restoreDatabase({ url: 'sqlite:hub.sqlite', directory: process.cwd() }, 'first');`;
