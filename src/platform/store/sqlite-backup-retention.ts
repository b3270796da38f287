import { readdirSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import { nextStep } from './migrate.ts';
import type { Migration } from './migration.ts';
import { keepSqlite } from './sqlite-backup.ts';

const maxCopies = 3;

/**
 * Copies a database that is about to be brought up to date to `<file>.before-<step>`, and keeps the
 * last three such copies. Does nothing for one that is new or up to date. Throws StartupError.
 */
export async function keepCopyBeforeMigration(
  // biome-ignore lint/suspicious/noExplicitAny: the tables of any past schema
  kysely: Kysely<any>,
  file: string,
  log: Logger,
  steps?: readonly Migration[],
): Promise<void> {
  const version = await readVersion(kysely);
  const step = version === 0 ? undefined : nextStep(version, steps);
  if (step === undefined) return;
  const copy = `${file}.before-${step.name}`;
  await keepSqlite(file, copy);
  log.info({ copy }, 'database copied before schema changes');
  await removeOldCopies(file);
}

// biome-ignore lint/suspicious/noExplicitAny: the tables of any past schema
async function readVersion(kysely: Kysely<any>): Promise<number> {
  const tables = await sql`select 1 from sqlite_master where name = 'hub_schema'`.execute(kysely);
  if (tables.rows.length === 0) return 0;
  const { rows } = await sql<{ version: number }>`select version from hub_schema`.execute(kysely);
  return rows[0]?.version ?? 0;
}

async function removeOldCopies(file: string): Promise<void> {
  const folder = dirname(file);
  const paths = readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(file)}.before-`) && !name.includes('.part'))
    .map((name) => join(folder, name));
  // Another process that starts at the same time removes them, too.
  const copies = await Promise.all(
    paths.map(async (path) => ({
      path,
      at: (await stat(path).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  const oldFirst = copies.toSorted((left, right) => left.at - right.at);
  for (const { path } of oldFirst.slice(0, -maxCopies)) await rm(path, { force: true });
}
