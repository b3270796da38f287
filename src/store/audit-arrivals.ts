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

/** What a row tells, in the order in which it stands in `audit_arrivals.entry`. */
const entryColumns = [
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

/** A row as it arrives, all in one value. */
export function packRow(row: AuditRow): string {
  return JSON.stringify(entryColumns.map((name) => row[name] ?? null));
}

const delayMs = 5_000;
/** Other writers wait no longer than for these. */
const rowsAtOnce = 1_000;
/** In their order many names at once touch far fewer pages of the table than a few at a time. */
const usersAtOnce = 10_000;

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
  const columns = sql.raw([...entryColumns, 'users'].join(', '));
  const entry = dialect === 'sqlite' ? 'entry' : 'entry::json';
  const values = sql.raw(
    entryColumns
      .map((name, index) =>
        name === 'at' ? `cast(${entry} ->> ${index} as bigint)` : `${entry} ->> ${index}`,
      )
      .join(', '),
  );
  /** Rows until they name as many users as are moved at once. */
  const first = (locked: 'for update' | '') => sql`
    select id, user_count from (
      select id, user_count, sum(user_count) over (order by id) - user_count as earlier from (
        select id, user_count from audit_arrivals order by id
        limit ${sql.lit(rowsAtOnce)} ${sql.raw(locked)}) as arrived) as counted
    where earlier < ${sql.lit(usersAtOnce)}`;
  const isFull = ({ rows, users }: { rows: unknown; users: unknown }) =>
    Number(rows) >= rowsAtOnce || Number(users) >= usersAtOnce;

  /** Several hubs may move at once: whoever waited for another finds nothing left. */
  async function moveSomeOnPostgres(): Promise<boolean> {
    const { rows } = await sql<{ rows: unknown; users: unknown }>`
      with arrival as (
        delete from audit_arrivals
        where id in (select id from (${first('for update')}) as taken)
        returning *),
      moved as (
        insert into audit (${columns}) select ${values}, users from arrival order by id
        returning id, at, users),
      named as (
        insert into audit_users (name, at, id)
        select name, at, id from moved, json_array_elements_text(users::json) as list(name)
        order by name
        on conflict do nothing)
      select count(*) as rows, sum(user_count) as users from arrival`.execute(kysely);
    return rows.some(isFull);
  }

  const moveSomeOnSqlite = (): Promise<boolean> =>
    kysely.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ last: number; newest: number; rows: number; users: number }>`
        select max(id) as last, coalesce((select max(id) from audit), 0) as newest,
          count(*) as rows, sum(user_count) as users
        from (${first('')})`.execute(transaction);
      const [found] = rows;
      if (found === undefined || found.rows === 0) return false;
      const { last, newest } = found;
      await sql`insert into audit (${columns}) select ${values}, users
        from audit_arrivals where id <= ${last} order by id`.execute(transaction);
      await sql`insert or ignore into audit_users (name, at, id)
        select list.value, audit.at, audit.id from audit, json_each(audit.users) as list
        where audit.id > ${newest} order by 1, 2, 3`.execute(transaction);
      await sql`delete from audit_arrivals where id <= ${last}`.execute(transaction);
      return isFull(found);
    });

  async function moveAll(): Promise<void> {
    const moveSome = dialect === 'sqlite' ? moveSomeOnSqlite : moveSomeOnPostgres;
    while (await moveSome());
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
