import { sql } from 'kysely';
import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** Of a user without a default server. */
const noServer = 3;

/** The place of a default server's row in the order of `UserSort`. */
const rank = `case state when 'running' then 0 when 'starting' then 1 when 'stopping' then 2
  else case when failure is null then ${noServer} else 4 end end`;

const update = (userId: string) => `update users set server_rank = coalesce(
  (select ${rank} from servers where user_id = users.id and name = ''), ${noServer}
) where id = ${userId}`;

/** Whose default server a changed row is or was. */
const triggers = [
  { deed: 'insert', on: 'insert', userId: 'new.user_id', isMeant: "new.name = ''" },
  {
    deed: 'update',
    on: 'update of state, failure, name',
    userId: 'new.user_id',
    isMeant: "'' in (old.name, new.name)",
  },
  { deed: 'delete', on: 'delete', userId: 'old.user_id', isMeant: "old.name = ''" },
] as const;

/**
 * The order of users by the states of their servers, in an index, so that no page has to sort all users. Triggers keep
 * it: whoever changes a server changes it too.
 */
export const migration0024: Migration = {
  name: '0024-server-order',
  async up(database, dialect) {
    await sql`alter table users add column server_rank integer not null default ${sql.lit(noServer)}`.execute(
      database,
    );
    const owners = "(select user_id from servers where name = '')";
    await sql.raw(update(`users.id and id in ${owners}`)).execute(database);
    await sql`create index users_server_rank on users (server_rank, name)`.execute(database);
    if (dialect === 'postgres') {
      // Nothing that anyone remembers depends on it.
      await sql`drop trigger note_update on users`.execute(database);
      await tell(database, {
        table: 'users',
        told: { update: 'rights_changed' },
        silent: ['last_activity_at', 'system_account', 'server_rank'],
      });
    }
    for (const { deed, on, userId, isMeant } of triggers) {
      const name = `rank_server_${deed}`;
      if (dialect === 'sqlite') {
        await sql
          .raw(
            `create trigger ${name} after ${on} on servers when ${isMeant}
              begin ${update(userId)}; end`,
          )
          .execute(database);
        continue;
      }
      await sql
        .raw(
          `create function hub_${name}() returns trigger language plpgsql as $$
            begin ${update(userId)}; return null; end $$`,
        )
        .execute(database);
      // The session that changes a table may have another search path than the hub.
      await sql
        .raw(
          `do $$ begin
            execute format('alter function hub_${name}() set search_path = %I, pg_temp', current_schema());
          end $$`,
        )
        .execute(database);
      await sql
        .raw(
          `create trigger ${name} after ${on} on servers
            for each row when (${isMeant}) execute function hub_${name}()`,
        )
        .execute(database);
    }
  },
};
