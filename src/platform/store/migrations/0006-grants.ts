import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** What users let clients have for as long as these refresh their tokens. */
export const migration0006: Migration = {
  name: '0006-grants',
  async up(database) {
    await sql`create table grants (
      id text primary key,
      user_id text not null references users (id) on delete cascade,
      client_id text not null,
      session_id text,
      scopes text not null,
      created_at bigint not null,
      last_used_at bigint not null
    )`.execute(database);
    await sql`create table refresh_tokens (
      token_hash text primary key,
      grant_id text not null references grants (id) on delete cascade,
      used_at bigint
    )`.execute(database);
    await sql`alter table access_tokens add column grant_id text`.execute(database);
    for (const [table, column] of [
      ['grants', 'user_id'],
      ['grants', 'client_id'],
      ['grants', 'session_id'],
      ['refresh_tokens', 'grant_id'],
      ['refresh_tokens', 'used_at'],
      ['access_tokens', 'grant_id'],
    ] as const) {
      await sql`create index ${sql.id(`${table}_${column}`)} on ${sql.table(table)} (${sql.id(column)})`.execute(
        database,
      );
    }
  },
};
