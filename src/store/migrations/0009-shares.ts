import { sql } from 'kysely';
import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** Who else may use a server, and the codes by which others get to be among them. */
export const migration0009: Migration = {
  name: '0009-shares',
  async up(database, dialect) {
    const { schema } = database;
    await schema
      .createTable('shares')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('server_id', 'text', (column) =>
        column.notNull().references('servers.id').onDelete('cascade'),
      )
      .addColumn('user_id', 'text', (column) => column.references('users.id').onDelete('cascade'))
      .addColumn('group_id', 'text', (column) => column.references('groups.id').onDelete('cascade'))
      .addColumn('scopes', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addUniqueConstraint('shares_of_user', ['server_id', 'user_id'])
      .addUniqueConstraint('shares_of_group', ['server_id', 'group_id'])
      .addCheckConstraint('shares_recipient', sql`(user_id is null) <> (group_id is null)`)
      .execute();
    for (const column of ['user_id', 'group_id']) {
      await schema.createIndex(`shares_${column}`).on('shares').column(column).execute();
    }

    await schema
      .createTable('share_codes')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('code_hash', 'text', (column) => column.notNull().unique())
      .addColumn('server_id', 'text', (column) =>
        column.notNull().references('servers.id').onDelete('cascade'),
      )
      .addColumn('scopes', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('exchange_count', 'integer', (column) => column.notNull())
      .addColumn('last_exchanged_at', 'bigint')
      .execute();
    for (const column of ['server_id', 'expires_at']) {
      await schema.createIndex(`share_codes_${column}`).on('share_codes').column(column).execute();
    }

    if (dialect !== 'postgres') return;
    const told = 'rights_changed';
    await tell(database, { table: 'shares', told: { insert: told, update: told, delete: told } });
    // The scopes of a share name the server: once it is renamed, another one may get that name.
    await sql`
      create function hub_note_rename() returns trigger language plpgsql security definer as $$
      begin
        insert into changes (kind) values ('rights_changed');
        return null;
      end $$`.execute(database);
    await sql`
      do $$ begin
        execute format('alter function hub_note_rename() set search_path = %I, pg_temp', current_schema());
      end $$`.execute(database);
    await sql`
      create trigger note_rename after update of name on servers for each row
      when (old.name is distinct from new.name) execute function hub_note_rename()`.execute(
      database,
    );
  },
};
