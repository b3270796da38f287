import { sql, type Transaction } from 'kysely';
import { pinSearchPath } from './search-path.ts';

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
  { event: 'insert', on: 'insert', userId: 'new.user_id', isMeant: "new.name = ''" },
  {
    event: 'update',
    on: 'update of state, failure, name',
    userId: 'new.user_id',
    isMeant: "'' in (old.name, new.name)",
  },
  { event: 'delete', on: 'delete', userId: 'old.user_id', isMeant: "old.name = ''" },
] as const;

/**
 * Keeps `users.server_rank`, the order of users by the states of their servers, so that no page has to sort all users:
 * whoever changes a server changes it too.
 */
export async function rankServers(
  database: Transaction<unknown>,
  dialect: 'sqlite' | 'postgres',
): Promise<void> {
  for (const { event, on, userId, isMeant } of triggers) {
    const name = `rank_server_${event}`;
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
    await pinSearchPath(database, `hub_${name}`);
    await sql
      .raw(
        `create trigger ${name} after ${on} on servers
            for each row when (${isMeant}) execute function hub_${name}()`,
      )
      .execute(database);
  }
}
