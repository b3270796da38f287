import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Ids of tokens that were ever taken over from a JupyterHub: one that was revoked here must not come back. */
export const migration0014: Migration = {
  name: '0014-taken-tokens',
  async up(database) {
    await sql`create table taken_tokens (id text primary key)`.execute(database);
    await sql`insert into taken_tokens (id)
      select id from access_tokens where id like '________-____-8%'`.execute(database);
  },
};
