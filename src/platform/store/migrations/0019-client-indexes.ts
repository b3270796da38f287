import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Of two indexes of one column SQLite may choose that of the client, which has far more of them than a login or user. */
const ofClient = [
  ['access_tokens', 'session_id'],
  ['access_tokens', 'user_id'],
  ['authorization_codes', 'session_id'],
  ['grants', 'user_id'],
] as const;

/** Finds what a login or user has of a client, and the few logins whose end a client is to be told. */
export const migration0019: Migration = {
  name: '0019-client-indexes',
  async up(database) {
    for (const [table, column] of ofClient) {
      const index = sql.id(`${table}_${column}`);
      await sql`drop index ${index}`.execute(database);
      await sql`create index ${index} on ${sql.id(table)} (${sql.id(column)}, client_id)`.execute(
        database,
      );
    }
    await sql`drop index client_logins_due_at`.execute(database);
    await sql`create index client_logins_due on client_logins (client_id, due_at)
      where due_at is not null`.execute(database);
  },
};
