import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';

/** Whose servers are to be started ahead. */
export interface ScheduledStartsStore {
  /**
   * Names of the members of groups whose server of this name is stopped, and has been neither started nor ended since a
   * time, in milliseconds since 1970. Users who are suspended are not among them.
   */
  listDue(
    groupNames: readonly string[],
    serverName: string,
    sinceMs: number,
  ): Promise<readonly string[]>;
}

export function createScheduledStartsStore(database: HubDatabase): ScheduledStartsStore {
  return {
    async listDue(groupNames, serverName, sinceMs) {
      const rows = await database.kysely
        .selectFrom('groups')
        .innerJoin('group_members', 'group_members.group_id', 'groups.id')
        .innerJoin('users', 'users.id', 'group_members.user_id')
        .leftJoin('servers', (join) =>
          join.onRef('servers.user_id', '=', 'users.id').on('servers.name', '=', serverName),
        )
        .where('groups.name', 'in', textsOf(groupNames, database))
        .where('users.suspended_at', 'is', null)
        .where(({ and, eb, or }) =>
          or([
            eb('servers.id', 'is', null),
            and([
              eb('servers.state', '=', 'stopped'),
              or([eb('starting_at', 'is', null), eb('starting_at', '<', sinceMs)]),
              or([eb('stopped_at', 'is', null), eb('stopped_at', '<', sinceMs)]),
            ]),
          ]),
        )
        .select('users.name')
        .distinct()
        .execute();
      return rows.map(({ name }) => name);
    },
  };
}
