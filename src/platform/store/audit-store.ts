import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import type { ActorKind, AuditEntry, AuditResult, AuditTarget } from '../audit/audit-event.ts';
import type { AuditPlace } from '../audit/audit-query.ts';
import { isStorageUnavailable } from '../errors.ts';
import { entriesOf } from './alike-entries.ts';
import { entryColumns } from './audit-staging.ts';
import type { HubDatabase } from './database.ts';
import { inTransaction, jsonRows } from './queries.ts';
import type { AuditRow, Row, Tables } from './tables.ts';

/** Narrows the audit log; everything given must match. */
export interface AuditFilter {
  readonly actor?: string;
  /** By whose name a target is found: `AuditTarget.name`, or one of `AuditEntry.users`. */
  readonly target?: string;
  readonly action?: string;
  /** From which it came. */
  readonly address?: string;
  readonly result?: AuditResult;
  /** Not before. */
  readonly since?: Date;
  /** Before. */
  readonly until?: Date;
}

interface ListOptions {
  readonly filter: AuditFilter;
  readonly limit: number;
  readonly after?: AuditPlace | undefined;
}

/** The audit log, to be read. */
export interface AuditStore {
  /** One page, newest first; `next` is undefined at the end. */
  list(
    options: ListOptions,
  ): Promise<{ readonly entries: AuditEntry[]; readonly next: AuditPlace | undefined }>;
  /** The entries for which one stands, oldest first; undefined when there is none of that id. */
  entriesOf(id: number): Promise<AuditEntry[] | undefined>;
  /** Deletes what is older, and the oldest beyond so many rows; tells how many. Stops when aborted. */
  purge(options: {
    readonly before: Date;
    /** 0 for no limit. */
    readonly maxRows: number;
    readonly signal?: AbortSignal;
  }): Promise<number>;
}

/** What entries have of those for which they stand is long, and read one by one. */
type ListedRow = Omit<Row<'audit'>, 'repeats'>;
const [at, ...ofEntry] = entryColumns;
const listed = ['audit.id', `audit.${at}`, ...ofEntry, 'users', 'entry_count'] as const;

/** So many rows are deleted at once: other writers wait no longer. */
const purgedAtOnce = 1_000;
/** In one purge; the next one goes on. */
const maxPurged = 200_000;

export function createAuditStore({
  kysely,
  dialect,
  audit,
}: Pick<HubDatabase, 'kysely' | 'dialect' | 'audit'>): AuditStore {
  /** Deletes rows by their ids, piece by piece. */
  async function deleteEach(
    oldest: () => SelectQueryBuilder<Tables, 'audit', { id: number }>,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    let deleted = 0;
    while (deleted < maxPurged && signal?.aborted !== true) {
      const count = await inTransaction(kysely, async (transaction) => {
        const rows = await transaction
          .deleteFrom('audit')
          .where('id', 'in', oldest().limit(purgedAtOnce))
          .returning(['id', 'at', 'users'])
          .execute();
        await deleteNames(transaction, rows);
        return rows.length;
      });
      deleted += count;
      if (count < purgedAtOnce) break;
    }
    return deleted;
  }

  async function deleteNames(
    transaction: Kysely<Tables>,
    rows: readonly Pick<Row<'audit'>, 'id' | 'at' | 'users'>[],
  ): Promise<void> {
    const named = rows.flatMap(({ id, at, users }) =>
      namesIn(users).map((name) => [name, at, id] as const),
    );
    if (named.length === 0) return;
    await sql`delete from audit_users where (name, at, id) in (
      select value ->> 0, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint)
      from ${jsonRows(named, { dialect })})`.execute(transaction);
  }

  /** Rows of one index in its order: newest first. */
  async function page(
    query: SelectQueryBuilder<Tables, 'audit' | 'audit_users', ListedRow>,
    index: 'audit' | 'audit_users',
    { filter: { actor, action, address, result, since, until }, limit, after }: ListOptions,
  ): Promise<ListedRow[]> {
    const at = `${index}.at` as const;
    const id = `${index}.id` as const;
    let narrowed = query;
    if (actor !== undefined) narrowed = narrowed.where('actor_name', '=', actor);
    if (action !== undefined) narrowed = narrowed.where('action', '=', action);
    if (address !== undefined) narrowed = narrowed.where('address', '=', address);
    if (result !== undefined) narrowed = narrowed.where('result', '=', result);
    // The index of what was not done has no other rows, which must be said to use it.
    if (result !== undefined && result !== 'done') {
      narrowed = narrowed.where(sql<boolean>`result <> 'done'`);
    }
    if (since !== undefined) narrowed = narrowed.where(at, '>=', since.getTime());
    if (until !== undefined) narrowed = narrowed.where(at, '<', until.getTime());
    if (after !== undefined) {
      const place = sql.join([sql.ref(at), sql.ref(id)]);
      narrowed = narrowed.where(sql<boolean>`(${place}) < (${after.at}, ${after.id})`);
    }
    return await narrowed
      .orderBy(at, 'desc')
      .orderBy(id, 'desc')
      .limit(limit + 1)
      .execute();
  }

  async function find(options: ListOptions): Promise<ListedRow[]> {
    const { target } = options.filter;
    const all = kysely.selectFrom('audit').select(listed);
    if (target === undefined) return await page(all, 'audit', options);
    const ofMany = kysely
      .selectFrom('audit_users')
      .innerJoin('audit', 'audit.id', 'audit_users.id')
      .select(listed)
      .where('audit_users.name', '=', target);
    const [own, amongMany] = await Promise.all([
      page(all.where('target_name', '=', target), 'audit', options),
      page(ofMany, 'audit_users', options),
    ]);
    // A group may have the name of one of its members.
    const found = new Map([...own, ...amongMany].map((row) => [row.id, row]));
    return [...found.values()].sort((one, other) => other.at - one.at || other.id - one.id);
  }

  /** Where nothing can be written, as on a full disk, the log is still to be read, but for its last minute. */
  async function catchUp(): Promise<void> {
    await audit.catchUp().catch((error: unknown) => {
      if (!isStorageUnavailable(error)) throw error;
    });
  }

  return {
    async list({ filter, limit, after }) {
      await catchUp();
      const rows = await find({ filter, limit, after });
      const entries = rows.slice(0, limit).map(toEntry);
      const last = rows[limit - 1];
      return {
        entries,
        next: rows.length > limit && last !== undefined ? { at: last.at, id: last.id } : undefined,
      };
    },

    async entriesOf(id) {
      await catchUp();
      const row = await kysely
        .selectFrom('audit')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst();
      return (
        row && entriesOf({ ...row, user_count: 1 }).map((each) => toEntry({ ...row, ...each }))
      );
    },

    async purge({ before, maxRows, signal }) {
      const rows = () => kysely.selectFrom('audit').select('id').orderBy('at').orderBy('id');
      const old = await deleteEach(() => rows().where('at', '<', before.getTime()), signal);
      if (maxRows === 0) return old;
      // Ids are given one after another: the newest tells which are too many without a count.
      const newest = await kysely
        .selectFrom('audit')
        .select('id')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst();
      const min = (newest?.id ?? 0) - maxRows;
      const surplus = () =>
        kysely.selectFrom('audit').select('id').where('id', '<=', min).orderBy('id');
      // What was merged counts for itself: it is the flood that makes way for the flood.
      const repeats = () =>
        kysely
          .selectFrom('audit')
          .select('id')
          .where('id', 'in', (from) =>
            from
              .selectFrom((audit) =>
                audit
                  .selectFrom('audit')
                  .select(['id', sql<number>`sum(entry_count) over (order by id desc)`.as('sum')])
                  .where('entry_count', '>', sql.lit(1))
                  .as('merged'),
              )
              .select('merged.id')
              .where('merged.sum', '>', maxRows),
          )
          .orderBy('id');
      const merged = await deleteEach(repeats, signal);
      return old + merged + (min > 0 ? await deleteEach(surplus, signal) : 0);
    },
  };
}

function toEntry(row: ListedRow): AuditEntry {
  return {
    id: row.id,
    at: new Date(row.at),
    count: row.entry_count,
    actor: {
      kind: row.actor_kind as ActorKind,
      name: row.actor_name ?? undefined,
      sessionId: row.session_id ?? undefined,
      tokenId: row.token_id ?? undefined,
      address: row.address ?? undefined,
    },
    action: row.action,
    ...targetsOf(row),
    result: row.result as AuditResult,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    instance: row.instance ?? undefined,
  };
}

/** What a row was done to. One user alone is the target, though there could have been several. */
export function targetsOf({
  target_kind: kind = null,
  target_name: name = null,
  target_part: part = null,
  users: list = null,
}: AuditRow): Pick<AuditEntry, 'target' | 'users'> {
  const users = namesIn(list);
  const [first] = users;
  if (kind !== null && name !== null) {
    const target = { kind: kind as AuditTarget['kind'], name, ...(part !== null && { part }) };
    return { target, users };
  }
  const isOne = first !== undefined && users.length === 1;
  return isOne
    ? { target: { kind: 'user', name: first }, users: [] }
    : { target: undefined, users };
}

function namesIn(list: string | null): readonly string[] {
  return list === null ? [] : (JSON.parse(list) as string[]);
}
