import { sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { type ListPage, type OffsetPageAsked, readPage } from '../../platform/store/page-edge.ts';
import { countOf, jsonRows, textsOf } from '../../platform/store/queries.ts';

/** The home of a user who has a server. */
export interface ListedHome {
  readonly userName: string;
  /** Undefined where nobody could tell. */
  readonly space:
    | { readonly usedBytes: number; readonly totalBytes: number; readonly measuredAt: Date }
    | undefined;
  /** Its place in the list, for the edge of a page. */
  readonly key: string;
}

/** How full homes were when they were looked at last: each call is one or two statements, however many there are. */
export interface HomeSpaceStore {
  /** The homes of users who have a server, or of some of them; those of which most is used come first. */
  list(onlyNames: 'all' | readonly string[], page: OffsetPageAsked): Promise<ListPage<ListedHome>>;
  /** The names of the system accounts of users, by their ids; of those who have one. */
  accountsOf(userIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  record(
    spaces: readonly {
      readonly userId: string;
      readonly usedBytes: number;
      readonly totalBytes: number;
    }[],
  ): Promise<void>;
}

export function createHomeSpaceStore(database: HubDatabase): HomeSpaceStore {
  const { kysely } = database;
  const used = sql<number>`coalesce(home_spaces.used_bytes, -1)`;

  return {
    async list(onlyNames, page) {
      const homes = kysely
        .selectFrom('users')
        .leftJoin('home_spaces', 'home_spaces.user_id', 'users.id')
        .where(({ exists, selectFrom }) =>
          exists(selectFrom('servers').select('id').whereRef('user_id', '=', 'users.id')),
        )
        .$if(onlyNames !== 'all', (all) =>
          all.where('users.name', 'in', textsOf(onlyNames === 'all' ? [] : onlyNames, database)),
        );
      return readPage(page, await countOf(homes), {
        placeOf,
        async read({ isBackwards, place, offset, limit }) {
          let query = homes.select(['users.name', 'used_bytes', 'total_bytes', 'measured_at']);
          if (place !== undefined) {
            const [less, more] = isBackwards ? [sql`>`, sql`<`] : [sql`<`, sql`>`];
            query = query.where(
              sql<boolean>`(${used} ${less} cast(${place.usedBytes} as bigint)
                or ${used} = cast(${place.usedBytes} as bigint) and users.name ${more} ${place.name})`,
            );
          }
          const rows = await query
            .orderBy(used, isBackwards ? 'asc' : 'desc')
            .orderBy('users.name', isBackwards ? 'desc' : 'asc')
            .offset(offset)
            .limit(limit)
            .execute();
          return rows.map(({ name, used_bytes, total_bytes, measured_at }) => ({
            userName: name,
            space:
              used_bytes === null
                ? undefined
                : {
                    usedBytes: used_bytes,
                    totalBytes: total_bytes ?? 0,
                    measuredAt: new Date(measured_at ?? 0),
                  },
            key: `${used_bytes ?? -1},${name}`,
          }));
        },
      });
    },

    async accountsOf(userIds) {
      const rows = await kysely
        .selectFrom('users')
        .where('id', 'in', textsOf(userIds, database))
        .where('system_account', 'is not', null)
        .select(['id', 'system_account'])
        .execute();
      return new Map(rows.map(({ id, system_account }) => [id, system_account ?? '']));
    },

    async record(spaces) {
      if (spaces.length === 0) return;
      const nowMs = database.now();
      const rows = spaces.map((each) => [each.userId, each.usedBytes, each.totalBytes]);
      // A user may have been deleted meanwhile.
      await sql`
        insert into home_spaces (user_id, used_bytes, total_bytes, measured_at)
        select users.id, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint), cast(${nowMs} as bigint)
        from ${jsonRows(rows, database)} join users on users.id = value ->> 0 where true
        on conflict (user_id) do update set used_bytes = excluded.used_bytes,
          total_bytes = excluded.total_bytes, measured_at = excluded.measured_at
      `.execute(kysely);
    },
  };
}

function placeOf(key: string) {
  const [, usedBytes, name = ''] = /^(-1|\d{1,15}),(.+)$/su.exec(key) ?? [];
  return usedBytes === undefined ? undefined : { usedBytes: Number(usedBytes), name };
}
