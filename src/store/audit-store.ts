import { type SelectQueryBuilder, sql } from 'kysely';
import type { AuditPlace } from '../audit/audit-query.ts';
import type { ActorKind, AuditEntry, AuditResult, AuditTarget } from '../audit/deed.ts';
import { isStorageUnavailable } from '../errors.ts';
import type { HubDatabase } from './database.ts';
import type { Row, Tables } from './tables.ts';

/** Narrows the audit log; everything given must match. */
export interface AuditFilter {
  readonly actor?: string;
  /** By whose name a target is found: `AuditTarget.name`. */
  readonly target?: string;
  readonly action?: string;
  readonly result?: AuditResult;
  /** Not before. */
  readonly since?: Date;
  /** Before. */
  readonly until?: Date;
}

/** The audit log, to be read. */
export interface AuditStore {
  /** One page, newest first; `next` is undefined at the end. */
  list(options: {
    readonly filter: AuditFilter;
    readonly limit: number;
    readonly after?: AuditPlace | undefined;
  }): Promise<{ readonly entries: AuditEntry[]; readonly next: AuditPlace | undefined }>;
  /** Deletes what is older, and the oldest beyond so many rows; tells how many. Stops when aborted. */
  purge(options: {
    readonly before: Date;
    /** 0 for no limit. */
    readonly mostRows: number;
    readonly signal?: AbortSignal;
  }): Promise<number>;
}

/** So many rows are deleted at once: other writers wait no longer. */
const purgedAtOnce = 2_000;
/** In one purge; the next one goes on. */
const mostPurged = 200_000;

export function createAuditStore({
  kysely,
  audit,
}: Pick<HubDatabase, 'kysely' | 'audit'>): AuditStore {
  /** Deletes rows by their ids, piece by piece. */
  async function deleteEach(
    oldest: () => SelectQueryBuilder<Tables, 'audit', { id: number }>,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    let deleted = 0;
    while (deleted < mostPurged && signal?.aborted !== true) {
      const { numDeletedRows } = await kysely
        .deleteFrom('audit')
        .where('id', 'in', oldest().limit(purgedAtOnce))
        .executeTakeFirst();
      deleted += Number(numDeletedRows);
      if (numDeletedRows < BigInt(purgedAtOnce)) break;
    }
    return deleted;
  }

  return {
    async list({ filter, limit, after }) {
      // Where nothing can be written, as on a full disk, the log is still to be read, but for its last seconds.
      await audit.catchUp().catch((error: unknown) => {
        if (!isStorageUnavailable(error)) throw error;
      });
      let query = kysely.selectFrom('audit').selectAll();
      const { actor, target, action, result, since, until } = filter;
      if (actor !== undefined) query = query.where('actor_name', '=', actor);
      if (target !== undefined) query = query.where('target_name', '=', target);
      if (action !== undefined) query = query.where('action', '=', action);
      if (result !== undefined) query = query.where('result', '=', result);
      // The index of what was not done has no other rows, which must be said to use it.
      if (result !== undefined && result !== 'done') {
        query = query.where(sql<boolean>`result <> 'done'`);
      }
      if (since !== undefined) query = query.where('at', '>=', since.getTime());
      if (until !== undefined) query = query.where('at', '<', until.getTime());
      if (after !== undefined) {
        query = query.where(sql<boolean>`(at, id) < (${after.at}, ${after.id})`);
      }
      const rows = await query
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const entries = rows.slice(0, limit).map(toEntry);
      const last = rows[limit - 1];
      return {
        entries,
        next: rows.length > limit && last !== undefined ? { at: last.at, id: last.id } : undefined,
      };
    },

    async purge({ before, mostRows, signal }) {
      const rows = () => kysely.selectFrom('audit').select('id').orderBy('at').orderBy('id');
      const old = await deleteEach(() => rows().where('at', '<', before.getTime()), signal);
      if (mostRows === 0) return old;
      // Ids are given one after another: the newest tells which are too many without a count.
      const newest = await kysely
        .selectFrom('audit')
        .select('id')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst();
      const least = (newest?.id ?? 0) - mostRows;
      const surplus = () =>
        kysely.selectFrom('audit').select('id').where('id', '<=', least).orderBy('id');
      return old + (least > 0 ? await deleteEach(surplus, signal) : 0);
    },
  };
}

function toEntry(row: Row<'audit'>): AuditEntry {
  return {
    id: row.id,
    at: new Date(row.at),
    actor: {
      kind: row.actor_kind as ActorKind,
      name: row.actor_name ?? undefined,
      sessionId: row.session_id ?? undefined,
      tokenId: row.token_id ?? undefined,
      address: row.address ?? undefined,
    },
    action: row.action,
    target: toTarget(row),
    result: row.result as AuditResult,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    instance: row.instance ?? undefined,
  };
}

function toTarget({
  target_kind: kind,
  target_name: name,
  target_part: part,
}: Row<'audit'>): AuditTarget | undefined {
  if (kind === null || name === null) return undefined;
  return { kind: kind as AuditTarget['kind'], name, ...(part !== null && { part }) };
}
