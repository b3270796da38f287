import { type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { type ListPage, type OffsetPageAsked, readPage } from '../../platform/store/page-edge.ts';
import { prepareQuery } from '../../platform/store/queries.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { filterUsers, findsAll, type UserFilter } from './user-filters-store.ts';

/**
 * The order of a list; a minus reverses it. Those who were never active come before all others. By the default server:
 * who has one that is running, starting, stopping, then those who have none or a stopped one, and who has one that failed.
 */
export type UserSort = `${'' | '-'}${keyof typeof columns}`;

/** Each is followed by the name, as in the indexes. */
const columns = {
  name: 'name',
  created: 'created_at',
  lastActivity: 'last_activity_at',
  server: 'server_rank',
} as const satisfies Record<string, keyof Row<'users'>>;

export interface UserListOptions extends UserFilter, OffsetPageAsked {
  /** How many there are on all pages, when that was counted lately. */
  readonly knownTotal?: number;
  readonly sort?: UserSort;
}

interface Deps {
  /** How many users there are. */
  readonly countAll: () => Promise<number>;
  readonly countFound: (filter: UserFilter) => Promise<number>;
  /** The database as it is asked what may take long. */
  readonly forLong: () => Promise<Pick<HubDatabase, 'kysely'>>;
}

/** Lists users a page at a time. */
export function createUserPages(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>,
  { countAll, countFound, forLong }: Deps,
): (options: UserListOptions) => Promise<ListPage<Row<'users'>>> {
  const { kysely } = database;
  const pageQueries = new Map<string, ReturnType<typeof preparePage>>();

  /** The pages of all users in one order, which is what is listed most. */
  function preparePage(sort: UserSort, isBackwards: boolean) {
    return prepareQuery(kysely, ({ limit, offset }: { limit: number; offset: number }) =>
      inOrder(kysely.selectFrom('users').selectAll('users'), sort, isBackwards)
        .limit(limit)
        .offset(offset),
    );
  }

  function pageQueryOf(sort: UserSort, isBackwards: boolean) {
    const key = `${sort} ${isBackwards}`;
    const known = pageQueries.get(key) ?? preparePage(sort, isBackwards);
    pageQueries.set(key, known);
    return known;
  }

  /** Those found, without the order. */
  async function foundUsers(options: UserListOptions, total: number) {
    const { limit, offset = 0 } = options;
    // Walked in order, this many users are met before the page is full; else all that are found are sorted.
    const met = ((offset + limit) * (await countAll())) / total;
    const correlated = { status: met < 2 * total, group: met < 2 * total };
    const { kysely: reads } = findsAll(options) ? database : await forLong();
    const query = filterUsers(reads.selectFrom('users'), options, database, correlated);
    return query.selectAll('users');
  }

  return async (options) => {
    const { sort = 'name' } = options;
    const isOfAll = findsAll(options);
    const total = isOfAll ? await countAll() : (options.knownTotal ?? (await countFound(options)));
    if (total === 0) return { items: [], total, isFirst: true, isLast: true };
    return readPage(options, total, {
      placeOf: (key) => placeOf(key, sort),
      async read({ isBackwards, place, offset, limit }) {
        if (isOfAll && place === undefined) {
          return pageQueryOf(sort, isBackwards)({ limit, offset });
        }
        const query = await foundUsers(options, total);
        const pastEdge =
          place && query.where((where) => isPastEdge(where, place, sort, isBackwards));
        return inOrder(pastEdge ?? query, sort, isBackwards)
          .limit(limit)
          .offset(offset)
          .execute();
      },
    });
  };
}

function columnOf(sort: UserSort) {
  return columns[sort.replace('-', '') as keyof typeof columns];
}

/** The key of a user's place in a list, for the edge of a page. */
export function userKey(row: Row<'users'>, sort: UserSort): string {
  const column = columnOf(sort);
  return column === 'name' ? row.name : `${row[column] ?? ''},${row.name}`;
}

/** What is sorted by, and a name; the former null where that is the name, or the user was never active. */
interface Place {
  readonly value: number | null;
  readonly name: string;
}

function placeOf(key: string, sort: UserSort): Place | undefined {
  const column = columnOf(sort);
  if (column === 'name') return { value: null, name: key };
  const [, digits, name = ''] = /^(\d{0,15}),(.*)$/su.exec(key) ?? [];
  if (digits === undefined || (digits === '' && column !== 'last_activity_at')) return undefined;
  return { value: digits === '' ? null : Number(digits), name };
}

/** Whether a user comes after a place in a list, or before it where that is walked backwards. */
function isPastEdge(
  where: ExpressionBuilder<Tables, 'users'>,
  { value, name }: Place,
  sort: UserSort,
  isBackwards: boolean,
) {
  const isDescending = sort.startsWith('-') !== isBackwards;
  const pastEdge = isDescending ? '<' : '>';
  const column = columnOf(sort);
  if (column === 'name') return where('users.name', pastEdge, name);
  const isNever = where('users.last_activity_at', 'is', null);
  if (value === null) {
    const isPastEdgeOfThese = where.and([isNever, where('users.name', pastEdge, name)]);
    if (isDescending) return isPastEdgeOfThese;
    return where.or([isPastEdgeOfThese, where('users.last_activity_at', 'is not', null)]);
  }
  // By itself PostgreSQL takes the number for one of the column, and refuses what that cannot hold.
  const isPast = sql<boolean>`(${sql.ref(`users.${column}`)}, users.name) ${sql.raw(pastEdge)} (cast(${value} as bigint), ${name})`;
  return column === 'last_activity_at' && isDescending ? where.or([isPast, isNever]) : isPast;
}

function inOrder(
  query: SelectQueryBuilder<Tables, 'users', Row<'users'>>,
  sort: UserSort,
  isBackwards: boolean,
) {
  const isDescending = sort.startsWith('-') !== isBackwards;
  const direction = isDescending ? 'desc' : 'asc';
  const column = columnOf(sort);
  let sorted = query;
  if (column === 'created_at' || column === 'server_rank') {
    sorted = sorted.orderBy(column, direction);
  }
  if (column === 'last_activity_at') {
    sorted = sorted.orderBy(column, (order) =>
      isDescending ? order.desc().nullsLast() : order.asc().nullsFirst(),
    );
  }
  // Equals would come in any order, and a user be on two pages or on none.
  return sorted.orderBy('name', direction);
}
