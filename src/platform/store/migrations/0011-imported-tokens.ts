import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Tokens that were taken over from a JupyterHub, by the hash that it kept, until they are used here. */
export const migration0011: Migration = {
  name: '0011-imported-tokens',
  async up(database) {
    await sql`create table imported_tokens (
      access_token_id text primary key references access_tokens (id) on delete cascade,
      prefix text not null,
      hash text not null
    )`.execute(database);
    await sql`create index imported_tokens_prefix on imported_tokens (prefix)`.execute(database);
  },
};
