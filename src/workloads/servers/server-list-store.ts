import { type ExpressionBuilder, sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { leaseHasEnded } from '../../platform/store/lease-clock.ts';
import { type ListPage, type PageAsked, readPage } from '../../platform/store/page-edge.ts';
import { hasInIt, textsOf } from '../../platform/store/queries.ts';
import type { Tables } from '../../platform/store/tables.ts';
import type { Server } from './server.ts';
import { selectServers, toServer } from './server-row-store.ts';

/** What a listed server does: those that were stopped are not listed. */
export const listedStates = ['failed', 'unreachable', 'starting', 'running', 'stopping'] as const;
export type ListedState = (typeof listedStates)[number];

/** The columns by which the list is sorted: by times the latest come first, and a minus reverses the order. */
export const serverSorts = ['state', 'name', 'since', 'activity'] as const;
export type ServerSort = `${'' | '-'}${(typeof serverSorts)[number]}`;

/** A server with the key of its place in the list, for the edge of a page. */
export type ListedServer = Server & { readonly key: string };

/** Narrows the list; everything given must match. */
export interface ServerFilter {
  /** Part of the name of the user. */
  readonly search: string;
  /** Of these users alone. */
  readonly userNames: 'all' | readonly string[];
  readonly state?: ListedState | undefined;
}

/** The servers of all users that are not stopped, or have failed. */
export interface ServerListStore {
  /** In the order of a column and then of users and names: by state those that have failed come first. */
  list(
    filter: ServerFilter,
    page: PageAsked & { readonly total: number; readonly sort: ServerSort },
  ): Promise<ListPage<ListedServer>>;
  /** The state of the filter does not count. */
  count(filter: ServerFilter): Promise<Readonly<Record<ListedState | 'all', number>>>;
}

export function createServerListStore(database: HubDatabase): ServerListStore {
  const isAway = leaseHasEnded(database, 'servers.instance_id');
  const shown = sql<ListedState>`case when servers.state = 'stopped' then 'failed'
    when ${isAway} then 'unreachable' else servers.state end`;
  const ranks = listedStates.map((state, rank) => sql`when ${state} then ${sql.lit(rank)}`);
  const sortedBy = {
    state: sql`case ${shown} ${sql.join(ranks, sql` `)} end`,
    name: sql`cast(0 as bigint)`,
    since: sql`case when servers.state = 'stopped' then servers.stopped_at else servers.started_at end`,
    activity: sql`servers.last_activity_at`,
  } as const;

  function isListed(
    where: ExpressionBuilder<Tables, 'servers' | 'users'>,
    { search, userNames }: ServerFilter,
  ) {
    return where.and([
      where.or([
        where('servers.state', '<>', 'stopped'),
        sql<boolean>`servers.state = 'stopped' and servers.failure is not null`,
      ]),
      ...(search === '' ? [] : [hasInIt('users.name', search)]),
      ...(userNames === 'all' ? [] : [where('users.name', 'in', textsOf(userNames, database))]),
    ]);
  }

  return {
    list(filter, { total, sort, ...page }) {
      const column = sort.replace('-', '') as (typeof serverSorts)[number];
      const value = sql<number>`coalesce(${sortedBy[column]}, 0)`;
      const isReversed = sort !== column;
      const isOfTimes = column === 'since' || column === 'activity';
      return readPage(page, total, {
        placeOf,
        async read({ isBackwards, place, limit }) {
          const isDescending = (isReversed !== isOfTimes) !== isBackwards;
          const direction = isDescending ? 'desc' : 'asc';
          let query = selectServers(database)
            .select(value.as('place'))
            .where((where) => isListed(where, filter));
          if (filter.state !== undefined) query = query.where(shown, '=', filter.state);
          if (place !== undefined) {
            const past = sql.raw(isDescending ? '<' : '>');
            query = query.where(
              sql<boolean>`(${value}, users.name, servers.name) ${past} (cast(${place.value} as bigint), ${place.user}, ${place.name})`,
            );
          }
          const rows = await query
            .orderBy(value, direction)
            .orderBy('users.name', direction)
            .orderBy('servers.name', direction)
            .limit(limit)
            .execute();
          return rows.map((row) => ({
            ...toServer(row),
            key: `${row.place},${row.name}/${row.user_name}`,
          }));
        },
      });
    },

    async count(filter) {
      const rows = await database.kysely
        .selectFrom('servers')
        .innerJoin('users', 'users.id', 'servers.user_id')
        .select([
          shown.as('shown'),
          ({ fn }) => fn.countAll<number | bigint | string>().as('count'),
        ])
        .where((where) => isListed(where, filter))
        .groupBy('shown')
        .execute();
      const counts = { failed: 0, unreachable: 0, starting: 0, running: 0, stopping: 0, all: 0 };
      for (const { shown: state, count } of rows) {
        counts[state] = Number(count);
        counts.all += Number(count);
      }
      return counts;
    },
  };
}

/** What is sorted by and the names of a key: no name of a server has a slash in it. */
function placeOf(key: string) {
  const [, value, name = '', user = ''] = /^(\d{1,15}),([^/]*)\/(.*)$/su.exec(key) ?? [];
  return value === undefined ? undefined : { value: Number(value), name, user };
}
