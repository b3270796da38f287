import { sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';
import type { Amounts } from './count-use.ts';

/** By what use is summed up, beside everything together. */
export const useKinds = ['user', 'group', 'profile'] as const;
export type UseKind = (typeof useKinds)[number];

/** By what a list is sorted, the most first. */
export const useSorts = ['server_hours', 'cpu_hours', 'gib_hours', 'gpu_hours', 'cost'] as const;
export type UseSort = (typeof useSorts)[number];

/** What a user, all members of a group, or all servers of a profile used. */
export interface NamedUse extends Amounts {
  /** As it is called now; of what is gone, as it was called last. */
  readonly name: string;
}

export interface UseOfDay extends Amounts {
  /** When the day begins, in milliseconds since 1970 (UTC). */
  readonly at: number;
}

/** Sums of the ledger: each call is one or two statements over rows of days or months, however much was recorded. */
export interface UsageStore {
  /** The days of a time on which something was used. */
  byDay(
    of: { readonly kind: UseKind; readonly name: string } | { readonly kind: 'all' },
    time: { readonly from: number; readonly to: number },
  ): Promise<readonly UseOfDay[]>;
  /** Who used how much in the month that begins at a time, a part of the list, and the sums of all of it. */
  ofMonth(asked: {
    readonly kind: UseKind;
    readonly month: number;
    /** Leaves out all others, and what is gone. */
    readonly onlyNames: 'all' | readonly string[];
    readonly sort: UseSort;
    readonly offset: number;
    readonly limit: number;
  }): Promise<{
    readonly items: readonly NamedUse[];
    readonly total: number;
    readonly sum: Amounts;
  }>;
}

const columnBySort = {
  server_hours: 'wall_seconds',
  cpu_hours: 'cpu_seconds',
  gib_hours: 'gib_seconds',
  gpu_hours: 'gpu_seconds',
  cost: 'cost',
} as const satisfies Record<UseSort, string>;

const amounts = [
  'usage_totals.wall_seconds as wallSeconds',
  'usage_totals.cpu_seconds as cpuSeconds',
  'usage_totals.gib_seconds as gibSeconds',
  'usage_totals.gpu_seconds as gpuSeconds',
  'usage_totals.cost as cost',
] as const;

export function createUsageStore(database: HubDatabase): UsageStore {
  const { kysely } = database;

  function subjectsNamed(kind: UseKind | 'all', name: string) {
    if (kind === 'user' || kind === 'group') {
      return kysely
        .selectFrom(kind === 'user' ? 'users' : 'groups')
        .select('id')
        .where('name', '=', name);
    }
    return sql<string>`(${name})`;
  }

  return {
    byDay(of, { from, to }) {
      // No list of one subject: SQLite would read the days of all the others too.
      return kysely
        .selectFrom('usage_totals')
        .where('kind', '=', of.kind)
        .where('subject', '=', subjectsNamed(of.kind, of.kind === 'all' ? '' : of.name))
        .where('span', '=', 'day')
        .where('at', '>=', from)
        .where('at', '<', to)
        .select(['at', ...amounts])
        .orderBy('at')
        .execute();
    },

    async ofMonth({ kind, month, onlyNames, sort, offset, limit }) {
      const known = kind === 'profile' ? undefined : kind === 'user' ? 'users' : 'groups';
      const name =
        known === undefined ? sql<string>`label` : sql<string>`coalesce(known.name, label)`;
      let query = kysely
        .selectFrom('usage_totals')
        .$if(
          known !== undefined,
          (all) =>
            all.leftJoin(
              `${known ?? 'users'} as known`,
              'known.id',
              'usage_totals.subject',
            ) as never,
        )
        .where('kind', '=', kind)
        .where('span', '=', 'month')
        .where('at', '=', month);
      if (onlyNames !== 'all') {
        const current = known === undefined ? sql.ref('label') : sql.ref('known.name');
        query = query.where(sql<boolean>`${current} in ${textsOf(onlyNames, database)}`);
      }
      const [items, sum] = await Promise.all([
        query
          .select([name.as('name'), ...amounts])
          .orderBy(`usage_totals.${columnBySort[sort]}`, 'desc')
          .orderBy('usage_totals.subject')
          .offset(offset)
          .limit(limit)
          .execute(),
        query
          .select(({ fn }) => [
            fn.countAll<number>().as('total'),
            fn.sum<number | null>('wall_seconds').as('wallSeconds'),
            fn.sum<number | null>('cpu_seconds').as('cpuSeconds'),
            fn.sum<number | null>('gib_seconds').as('gibSeconds'),
            fn.sum<number | null>('gpu_seconds').as('gpuSeconds'),
            fn.sum<number | null>('cost').as('cost'),
          ])
          .executeTakeFirstOrThrow(),
      ]);
      const { total, ...found } = sum;
      return {
        items,
        total: Number(total),
        sum: {
          wallSeconds: found.wallSeconds ?? 0,
          cpuSeconds: found.cpuSeconds ?? 0,
          gibSeconds: found.gibSeconds ?? 0,
          gpuSeconds: found.gpuSeconds ?? 0,
          cost: found.cost ?? 0,
        },
      };
    },
  };
}
