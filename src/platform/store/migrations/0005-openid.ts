import { sql } from 'kysely';
import type { Migration } from '../migration.ts';
import { each, tellChanges } from './0001-initial/change-log.ts';

/** What OpenID Connect asks for: keys that sign, how somebody logged in, and what a code repeats. */
export const migration0005: Migration = {
  name: '0005-openid',
  async up(database, dialect) {
    await sql`create table signing_keys (
      id text primary key,
      alg text not null,
      sealed text not null,
      active_from bigint not null,
      ends_at bigint
    )`.execute(database);
    // Of several processes that make a key at once, one does.
    await sql`create unique index signing_keys_newest on signing_keys (alg) where ends_at is null`.execute(
      database,
    );
    await sql`alter table authorization_codes add column nonce text`.execute(database);
    await sql`alter table authorization_codes add column authenticated_at bigint`.execute(database);
    await sql`alter table login_sessions add column amr text`.execute(database);
    await sql`alter table login_sessions add column acr text`.execute(database);
    if (dialect === 'postgres') {
      await tellChanges(database, {
        table: 'signing_keys',
        reported: each('signing_keys_changed'),
      });
    }
  },
};
