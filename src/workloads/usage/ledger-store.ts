import { type RawBuilder, sql } from 'kysely';
import type { InstanceStore } from '../../cluster/instances/instance-store.ts';
import { advisoryLocks } from '../../platform/store/advisory-locks.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { jsonRows, textsOf } from '../../platform/store/queries.ts';
import { profileIn } from '../servers/server-row-store.ts';
import type { WriteEnd } from '../servers/unit-events.ts';
import {
  type Amounts,
  addAmounts,
  amountKeys,
  hourMs,
  type Meter,
  type Subject,
  type Use,
} from './count-use.ts';

/** A run of this instance, and whose it is. */
export interface OwnedMeter extends Meter {
  readonly subject: Omit<Subject, 'engine'>;
  readonly isPaused: boolean;
}

/** What was used since a run was counted last. */
export interface Counted {
  readonly meter: Meter;
  readonly subject: Subject;
  readonly uses: readonly Use[];
  /** Of the run; undefined for one that has ended. */
  readonly next: { readonly cpuSeconds: number | undefined; readonly last: LastUse } | undefined;
}

/** What a run used when it was measured last: until its end it is taken to go on like that. */
export interface LastUse {
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly gpus: number;
}

/** A run that has ended since it was counted last. */
export interface EndedMeter extends Meter {
  readonly subject: Subject;
  readonly last: LastUse;
  readonly endedAt: number | undefined;
}

/** What servers used, written by the instance that runs them. */
export interface LedgerStore {
  /**
   * Renews the lease of an instance and writes in the same transaction what its servers used; a fixed number of
   * statements, however many they are. `count` may be called again. Gives the time by the database's clock and how many
   * runs are still counted; undefined without a lease, where nothing is written. Of one server alone where that is said,
   * whose end `write` writes in the same transaction, with a lease or without.
   */
  record(
    instanceId: string,
    one: { readonly serverId?: string; readonly write?: WriteEnd },
    count: (
      found: { readonly owned: readonly OwnedMeter[]; readonly ended: readonly EndedMeter[] },
      nowMs: number,
    ) => readonly Counted[],
  ): Promise<{ readonly nowMs: number; readonly counted: readonly Counted[] } | undefined>;
}

export const dayMs = 24 * hourMs;

const amountColumns = {
  wallSeconds: 'wall_seconds',
  cpuSeconds: 'cpu_seconds',
  gibSeconds: 'gib_seconds',
  gpuSeconds: 'gpu_seconds',
  cost: 'cost',
} as const satisfies Record<keyof Amounts, string>;
const columns = amountKeys.map((key) => amountColumns[key]);

export function createLedgerStore(
  database: HubDatabase,
  instances: Pick<InstanceStore, 'renewHeld'>,
): LedgerStore {
  const { kysely, dialect } = database;
  const list = sql.raw(dialect === 'sqlite' ? 'json_group_array' : 'json_agg');
  const object = sql.raw(dialect === 'sqlite' ? 'json_object' : 'json_build_object');
  // The driver would parse JSON that is not cast.
  const asText = sql.raw(dialect === 'sqlite' ? '' : '::text');

  type On = typeof kysely;

  async function ownedBy(on: On, instanceId: string, serverId?: string): Promise<OwnedMeter[]> {
    const groups = sql<string | null>`(
      select ${list}(${object}('id', member_of.id, 'name', member_of.name))${asText}
      from group_members join ${sql.table('groups')} as member_of on member_of.id = group_members.group_id
      where group_members.user_id = servers.user_id
    )`;
    const rows = await on
      .selectFrom('servers')
      .innerJoin('users', 'users.id', 'servers.user_id')
      .leftJoin('server_meters as meter', (join) =>
        join
          .onRef('meter.server_id', '=', 'servers.id')
          .onRef('meter.started_at', '=', 'servers.started_at'),
      )
      .where('servers.instance_id', '=', instanceId)
      .where('servers.state', '!=', 'stopped')
      .where('servers.started_at', 'is not', null)
      .$if(serverId !== undefined, (all) => all.where('servers.id', '=', serverId ?? ''))
      .select([
        'servers.id',
        'servers.name',
        'servers.user_options',
        'servers.started_at',
        'servers.paused_at',
        'users.id as user_id',
        'users.name as user_name',
        'meter.counted_at',
        'meter.cpu_seconds',
        groups.as('groups'),
      ])
      .orderBy('servers.id')
      .execute();
    return rows.map((row) => ({
      serverId: row.id,
      startedAt: row.started_at ?? 0,
      countedAt: row.counted_at ?? undefined,
      cpuSeconds: row.cpu_seconds ?? undefined,
      isPaused: row.paused_at !== null,
      subject: {
        serverName: row.name,
        userId: row.user_id,
        userName: row.user_name,
        groups: JSON.parse(row.groups ?? '[]') as Subject['groups'],
        profile: profileIn(row.user_options) ?? '',
      },
    }));
  }

  /** Runs that nobody runs any more. */
  async function ended(on: On, serverId?: string): Promise<EndedMeter[]> {
    const rows = await on
      .selectFrom('server_meters as meter')
      .leftJoin('servers', 'servers.id', 'meter.server_id')
      .where(({ or, eb }) =>
        or([
          eb('servers.id', 'is', null),
          eb('servers.state', '=', 'stopped'),
          eb('servers.started_at', '!=', eb.ref('meter.started_at')),
        ]),
      )
      .$if(serverId !== undefined, (all) => all.where('meter.server_id', '=', serverId ?? ''))
      .selectAll('meter')
      .select('servers.stopped_at')
      .execute();
    return rows.map((row) => {
      const { last, ...subject } = JSON.parse(row.subject) as Subject & { readonly last: LastUse };
      return {
        serverId: row.server_id,
        startedAt: row.started_at,
        countedAt: row.counted_at,
        cpuSeconds: row.cpu_seconds ?? undefined,
        subject,
        last,
        endedAt: row.stopped_at ?? undefined,
      };
    });
  }

  /** Adds rows to those of the same key. */
  async function add(
    on: On,
    table: 'usage_records' | 'usage_totals',
    { key, others }: { readonly key: readonly string[]; readonly others: readonly string[] },
    rows: readonly (readonly unknown[])[],
  ): Promise<void> {
    if (rows.length === 0) return;
    const names = [...key, ...others, ...columns];
    const isNumber = (name: string) => columns.includes(name as 'cost');
    const values = names.map((name, index) => {
      const value = sql`value ->> ${sql.lit(index)}`;
      if (isNumber(name)) return sql`cast(${value} as double precision)`;
      return name === 'at' ? sql`cast(${value} as bigint)` : value;
    });
    const list = (all: readonly string[]) => sql.join(all.map((name) => sql.id(name)));
    await sql`
      insert into ${sql.table(table)} (${list(names)})
      select ${sql.join(values)} from ${jsonRows(rows, database)} where true
      on conflict (${list(key)}) do update set ${sql.join([...others.map(replaced), ...columns.map((name) => added(table, name))])}
    `.execute(on);
  }

  return {
    record: (instanceId, { serverId, write }, count) =>
      database.transaction(async (transaction) => {
        if (dialect === 'postgres') {
          await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLocks.usage)})`.execute(
            transaction,
          );
        }
        const nowMs = await instances.renewHeld(transaction, instanceId);
        if (nowMs === undefined) {
          await write?.(transaction);
          return undefined;
        }
        const owned = await ownedBy(transaction, instanceId, serverId);
        const counted = count({ owned, ended: await ended(transaction, serverId) }, nowMs);
        const over = counted.filter(({ next }) => next === undefined);
        if (over.length > 0) {
          const ids = over.map(({ meter }) => meter.serverId);
          await transaction
            .deleteFrom('server_meters')
            .where('server_id', 'in', textsOf(ids, database))
            .execute();
        }
        const meters = counted.flatMap(({ meter, subject, next }) =>
          next === undefined
            ? []
            : [
                [
                  meter.serverId,
                  meter.startedAt,
                  nowMs,
                  next.cpuSeconds ?? null,
                  JSON.stringify({ ...subject, last: next.last }),
                ],
              ],
        );
        if (meters.length > 0) {
          await sql`
            insert into server_meters (server_id, started_at, counted_at, cpu_seconds, subject)
            select value ->> 0, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint),
              cast(value ->> 3 as double precision), value ->> 4
            from ${jsonRows(meters, database)} where true
            on conflict (server_id) do update set ${sql.join(['started_at', 'counted_at', 'cpu_seconds', 'subject'].map(replaced))}
          `.execute(transaction);
        }
        await add(transaction, 'usage_records', recordsKey, recordsOf(counted));
        await add(transaction, 'usage_totals', totalsKey, totalsOf(counted));
        await write?.(transaction);
        return { nowMs, counted };
      }),
  };
}

const recordsKey = {
  key: ['span', 'at', 'server_id', 'profile', 'engine', 'source'],
  others: ['server_name', 'user_id', 'user_name', 'user_groups'],
} as const;
const totalsKey = { key: ['kind', 'span', 'at', 'subject'], others: ['label'] } as const;

const replaced = (name: string): RawBuilder<unknown> =>
  sql`${sql.id(name)} = excluded.${sql.id(name)}`;
const added = (table: string, name: string): RawBuilder<unknown> =>
  sql`${sql.id(name)} = ${sql.id(table, name)} + excluded.${sql.id(name)}`;

export const startOfDay = (ms: number): number => ms - (ms % dayMs);
export const startOfMonth = (ms: number): number => {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
};

/** Rows with one key, of which a statement can change none twice, as one; in the order of their keys. */
function merged(
  entries: readonly {
    readonly key: readonly unknown[];
    readonly others: readonly unknown[];
    readonly amounts: Amounts;
  }[],
): readonly (readonly unknown[])[] {
  const byKey = new Map<string, (typeof entries)[number]>();
  for (const entry of entries) {
    const key = JSON.stringify(entry.key);
    const known = byKey.get(key);
    byKey.set(
      key,
      known === undefined ? entry : { ...entry, amounts: addAmounts(known.amounts, entry.amounts) },
    );
  }
  return [...byKey]
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([, { key, others, amounts }]) => [
      ...key,
      ...others,
      ...amountKeys.map((name) => amounts[name]),
    ]);
}

function recordsOf(counted: readonly Counted[]) {
  return merged(
    counted.flatMap(({ meter, subject, uses }) =>
      uses.map(({ at, source, amounts }) => ({
        key: ['hour', at, meter.serverId, subject.profile, subject.engine, source],
        others: [
          subject.serverName,
          subject.userId,
          subject.userName,
          JSON.stringify(subject.groups.map(({ name }) => name)),
        ],
        amounts,
      })),
    ),
  );
}

function totalsOf(counted: readonly Counted[]) {
  return merged(
    counted.flatMap(({ subject, uses }) => {
      const subjects = [
        ['all', '', ''],
        ['user', subject.userId, subject.userName],
        ...subject.groups.map(({ id, name }) => ['group', id, name] as const),
        ...(subject.profile === '' ? [] : [['profile', subject.profile, subject.profile] as const]),
      ] as const;
      return uses.flatMap(({ at, amounts }) =>
        subjects.flatMap(([kind, id, label]) =>
          (
            [
              ['hour', at],
              ['day', startOfDay(at)],
              ['month', startOfMonth(at)],
            ] as const
          ).map(([span, start]) => ({ key: [kind, span, start, id], others: [label], amounts })),
        ),
      );
    }),
  );
}

/** Makes days of the hours of days before that of a time, a day at a time. */
export async function compactUse(database: HubDatabase, before: Date): Promise<void> {
  const { key, others } = recordsKey;
  const names = (all: readonly string[]) => sql.join(all.map((name) => sql.id(name)));
  const keys = names(key.slice(2));
  const latest = sql.join(others.map((name) => sql`max(${sql.id(name)})`));
  const sums = sql.join(columns.map((name) => sql`sum(${sql.id(name)})`));
  for (;;) {
    const oldest = await database.kysely
      .selectFrom('usage_records')
      .where('span', '=', 'hour')
      .select(({ fn }) => fn.min<number | null>('at').as('at'))
      .executeTakeFirst();
    const day = startOfDay(Number(oldest?.at ?? before.getTime()));
    if (day >= startOfDay(before.getTime())) return;
    await database.transaction(async (transaction) => {
      await sql`
        insert into usage_records (${names([...key, ...others, ...columns])})
        select 'day', ${day}, ${keys}, ${latest}, ${sums}
        from usage_records where span = 'hour' and at < ${day + dayMs}
        group by ${keys}
        on conflict (${names(key)}) do update set
          ${sql.join(columns.map((name) => added('usage_records', name)))}
      `.execute(transaction);
      for (const table of ['usage_records', 'usage_totals'] as const) {
        await transaction
          .deleteFrom(table)
          .where('span', '=', 'hour')
          .where('at', '<', day + dayMs)
          .execute();
      }
    });
  }
}
