import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Which clients a login was used for, so that they are told of its end. */
export const migration0008: Migration = {
  name: '0008-client-logins',
  async up(database) {
    await sql`create table client_logins (
      session_id text not null,
      client_id text not null,
      user_id text not null,
      due_at bigint,
      attempts integer not null default 0,
      primary key (session_id, client_id)
    )`.execute(database);
    for (const column of ['user_id', 'client_id', 'due_at']) {
      await sql`create index ${sql.id(`client_logins_${column}`)} on client_logins (${sql.id(column)})`.execute(
        database,
      );
    }
  },
};
