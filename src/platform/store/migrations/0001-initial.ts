import { sql } from 'kysely';
import type { Migration } from '../migration.ts';
import { createAudit } from './0001-initial/audit.ts';
import { createChangeLog } from './0001-initial/change-log.ts';
import { rankServers } from './0001-initial/server-rank.ts';
import { tablesOf } from './0001-initial/tables.ts';

/** The schema of the first release. */
export const migration0001: Migration = {
  name: '0001-initial',
  async up(database, dialect) {
    for (const statement of tablesOf(dialect)) await sql.raw(statement).execute(database);
    await createAudit(database, dialect);
    if (dialect === 'postgres') await createChangeLog(database);
    await rankServers(database, dialect);
  },
};
