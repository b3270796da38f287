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
  /** By user and name. */
  list(
    filter: ServerFilter,
    page: PageAsked & { readonly total: number },
  ): Promise<ListPage<Server>>;
  /** The state of the filter does not count. */
  count(filter: ServerFilter): Promise<Readonly<Record<ListedState | 'all', number>>>;
}

/** For the edge of a page: no name of a server has a slash in it. */
export function serverKey({ name, userName }: Pick<Server, 'name' | 'userName'>): string {
  return `${name}/${userName}`;
}

export function createServerListStore(database: HubDatabase): ServerListStore {
  const isAway = leaseHasEnded(database, 'servers.instance_id');
  const shown = sql<ListedState>`case when servers.state = 'stopped' then 'failed'
    when ${isAway} then 'unreachable' else servers.state end`;

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
    list(filter, { total, ...page }) {
      return readPage(page, total, {
        placeOf(key) {
          const slash = key.indexOf('/');
          return slash < 0 ? undefined : { name: key.slice(0, slash), user: key.slice(slash + 1) };
        },
        async read({ isBackwards, place, limit }) {
          const direction = isBackwards ? 'desc' : 'asc';
          let query = selectServers(database).where((where) => isListed(where, filter));
          if (filter.state !== undefined) query = query.where(shown, '=', filter.state);
          if (place !== undefined) {
            const past = sql.raw(isBackwards ? '<' : '>');
            query = query.where(
              sql<boolean>`(users.name, servers.name) ${past} (${place.user}, ${place.name})`,
            );
          }
          const rows = await query
            .orderBy('users.name', direction)
            .orderBy('servers.name', direction)
            .limit(limit)
            .execute();
          return rows.map(toServer);
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
