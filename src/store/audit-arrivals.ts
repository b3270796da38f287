import { type Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import type { AuditRow, Tables } from './tables.ts';

/** Moves rows that were recorded into the audit log, where they can be found by what they tell. */
export interface AuditArrivals {
  /** Moves them in a moment, with those that come meanwhile. */
  moveSoon(): void;
  /** Moves those that are there now. Rejects when the database cannot be written: they stay where they are. */
  move(): Promise<void>;
  /** Leaves those that come to the next hub, or to the next who reads the log. */
  stop(): void;
}

/** Every column of a row but its id. */
export const auditColumns = [
  'at',
  'actor_kind',
  'actor_name',
  'session_id',
  'token_id',
  'address',
  'action',
  'target_kind',
  'target_name',
  'target_part',
  'result',
  'detail',
  'instance',
] as const satisfies readonly (keyof AuditRow)[];

const delayMs = 5_000;
/** Other writers wait no longer than for these. */
const movedAtOnce = 1_000;

export function createAuditArrivals({
  kysely,
  dialect,
  log,
}: {
  readonly kysely: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  readonly log: Logger;
}): AuditArrivals {
  let timer: NodeJS.Timeout | undefined;
  let moving = Promise.resolve();
  let isStopped = false;
  const columns = sql.join(auditColumns.map((name) => sql.ref(name)));
  /** As they are in the log: a row that stands for several is one for each. */
  const moved = sql.join(
    auditColumns.map((name) =>
      name === 'target_name'
        ? sql`coalesce(target.value, arrival.target_name)`
        : sql.ref(`arrival.${name}`),
    ),
  );
  /** Whole rows, until they stand for as many as are moved at once. */
  const first = (locked: 'for update' | '') => sql`
    select id, target_count from (
      select id, target_count, sum(target_count) over (order by id) - target_count as earlier from (
        select id, target_count from audit_arrivals order by id
        limit ${sql.lit(movedAtOnce)} ${sql.raw(locked)}) as arrived) as counted
    where earlier < ${sql.lit(movedAtOnce)}`;

  /** Several hubs may move at once: whoever waited for another finds nothing left. */
  async function moveSomeOnPostgres(): Promise<number> {
    const { numAffectedRows = 0n } = await sql`
      with arrival as (
        delete from audit_arrivals
        where id in (select id from (${first('for update')}) as taken)
        returning *)
      insert into audit (${columns}) select ${moved}
      from arrival left join lateral
        json_array_elements_text(arrival.target_names::json) with ordinality as target(value, key) on true
      order by arrival.id, target.key`.execute(kysely);
    return Number(numAffectedRows);
  }

  const moveSomeOnSqlite = (): Promise<number> =>
    kysely.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ last: number | null; count: number | null }>`
        select max(id) as last, sum(target_count) as count from (${first('')})`.execute(
        transaction,
      );
      const [{ last, count } = { last: null, count: null }] = rows;
      if (last === null || count === null) return 0;
      await sql`insert into audit (${columns}) select ${moved}
        from audit_arrivals as arrival left join json_each(arrival.target_names) as target
        where arrival.id <= ${last} order by arrival.id, target.id`.execute(transaction);
      await sql`delete from audit_arrivals where id <= ${last}`.execute(transaction);
      return count;
    });

  async function moveAll(): Promise<void> {
    const moveSome = dialect === 'sqlite' ? moveSomeOnSqlite : moveSomeOnPostgres;
    while ((await moveSome()) >= movedAtOnce);
  }

  async function move(): Promise<void> {
    const one = await kysely.selectFrom('audit_arrivals').select('id').limit(1).execute();
    if (one.length === 0) return;
    const turn = moving.then(moveAll);
    moving = turn.catch(() => {});
    await turn;
  }

  return {
    move,
    moveSoon() {
      if (isStopped) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        move().catch((error: unknown) => {
          if (isStopped) return;
          log.warn({ err: error }, 'the audit log could not be brought up to date');
        });
      }, delayMs).unref();
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
