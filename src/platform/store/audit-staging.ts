import { type Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import { alikeBy, alikeKey, maxAlike, mergeAlike } from './alike-entries.ts';
import { jsonRows } from './queries.ts';
import type { AuditRow, Tables } from './tables.ts';

/** Moves rows from the staging table, `audit_arrivals`, into the audit log, where they can be found by what they tell. */
export interface AuditStaging {
  /** Moves them in a moment, with those that come meanwhile. */
  moveSoon(): void;
  /** Moves those that are there now. Rejects when the database cannot be written: they stay where they are. */
  move(): Promise<void>;
  /** Leaves those that come to the next hub, or to the next who reads the log. */
  stop(): void;
}

/** What a row tells, in the order in which it stands in `audit_arrivals.entry`. */
export const entryColumns = [
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

/** A row as it arrives, all in one value. One that stands for others says for how many, and what they have. */
export function packRow(row: AuditRow): string {
  const values = entryColumns.map((name) => row[name] ?? null);
  const { entry_count: count = 1, repeats = null } = row;
  return JSON.stringify(count === 1 ? values : [...values, count, repeats]);
}

function unpackRow(entry: string): AuditRow {
  const values = JSON.parse(entry) as unknown[];
  const row = Object.fromEntries(entryColumns.map((name, index) => [name, values[index]]));
  return row as unknown as AuditRow;
}

/** Who reads the log does not wait for it. */
const delayMs = 60_000;
/** Entries among which those that are alike are merged. */
const foldedAtOnce = 5_000;
/** Other writers wait no longer than for these. */
const rowsAtOnce = 1_000;
/** In their order many names at once touch far fewer pages of the table than a few at a time. */
const usersAtOnce = 10_000;

export function createAuditStaging({
  kysely,
  dialect,
  log,
}: {
  readonly kysely: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  readonly log: Logger;
}): AuditStaging {
  let timer: NodeJS.Timeout | undefined;
  let moving = Promise.resolve();
  let isStopped = false;
  const columns = sql.raw([...entryColumns, 'entry_count', 'repeats', 'users'].join(', '));
  const entry = dialect === 'sqlite' ? 'entry' : 'entry::json';
  const values = sql.raw(
    entryColumns
      .map((name, index) =>
        name === 'at' ? `cast(${entry} ->> ${index} as bigint)` : `${entry} ->> ${index}`,
      )
      .concat(
        `coalesce(cast(${entry} ->> ${entryColumns.length} as integer), 1)`,
        `${entry} ->> ${entryColumns.length + 1}`,
      )
      .join(', '),
  );
  /** Not those that name several users, or stand for others already. */
  const foldable = sql`from audit_arrivals
    where users is null and ${sql.raw(`${entry} ->> ${entryColumns.length}`)} is null
    order by id limit ${sql.lit(foldedAtOnce)}`;
  const keyColumns = alikeBy.map((name, index) =>
    sql.raw(`${entry} ->> ${entryColumns.indexOf(name)} as key_${index}`),
  );
  const keys = sql.raw(alikeBy.map((_name, index) => `key_${index}`).join(', '));
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

  /**
   * Merges arrivals alike beyond the first few, so that no one pushes what others do out of sight. Tells whether there
   * were any.
   */
  async function foldSome(): Promise<boolean> {
    const { rows: floods } = await sql`select 1 from (select ${sql.join(keyColumns)} ${foldable})
      as arrived group by ${keys} having count(*) > ${sql.lit(maxAlike)} limit 1`.execute(kysely);
    if (floods.length === 0) return false;
    return await kysely.transaction().execute(async (transaction) => {
      const locked = sql.raw(dialect === 'sqlite' ? '' : 'for update');
      const { rows } = await sql<{ id: number; entry: string }>`
        select id, entry ${foldable} ${locked}`.execute(transaction);
      const arrived = rows.map(({ id, entry }) => ({ id, row: unpackRow(entry) }));
      const alike = [...Map.groupBy(arrived, ({ row }) => alikeKey(row)).values()];
      const folded = alike.map((each) => each.slice(maxAlike)).filter((each) => each.length > 1);
      if (folded.length === 0) return false;
      const ids = jsonRows(
        folded.flat().map(({ id }) => [Number(id)]),
        { dialect },
      );
      await sql`delete from audit_arrivals
        where id in (select cast(value ->> 0 as bigint) from ${ids})`.execute(transaction);
      const merged = folded.flatMap((each) => mergeAlike(each.map(({ row }) => row)));
      await transaction
        .insertInto('audit_arrivals')
        .values(merged.map((row) => ({ entry: packRow(row) })))
        .execute();
      return true;
    });
  }

  async function moveAll(): Promise<void> {
    while (await foldSome());
    const moveSome = dialect === 'sqlite' ? moveSomeOnSqlite : moveSomeOnPostgres;
    while (await moveSome());
  }

  async function move(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
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
        move().catch((error: unknown) => {
          if (isStopped) return;
          log.warn({ err: error }, 'audit log could not be updated');
        });
      }, delayMs).unref();
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
