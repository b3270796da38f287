import type { Compilable, CompiledQuery, Kysely } from 'kysely';
import type { Logger } from 'pino';
import { type Actor, currentActor } from '../audit/actor.ts';
import type { Deed } from '../audit/deed.ts';
import { afterCommit } from './after-commit.ts';
import { createBoundedRecords } from './bounded-records.ts';
import type { AuditRow, Tables } from './tables.ts';

/** Where deeds are recorded. Nothing changes or deletes a row but the purge of old ones. */
export interface AuditTrail {
  /**
   * Records deeds of the current actor. Within the transaction of a deed it is recorded if and only if it
   * is done.
   */
  record(on: Kysely<Tables>, ...deeds: readonly Deed[]): Promise<void>;
  /**
   * On SQLite: runs a change that returns ids, and records deeds with it, both or neither, at the cost of one
   * statement. A deed is recorded where there is a user of its id afterwards.
   */
  recordNewUsers<Row extends { readonly id: string }>(
    change: Compilable<Row>,
    deeds: ReadonlyMap<string, Deed>,
  ): Promise<Row[]>;
  /** Records what has no transaction. It is done already: that it cannot be recorded is logged, not thrown. */
  recordAlone(...deeds: readonly Deed[]): Promise<void>;
  /**
   * Records a refusal or failure a moment later. Anyone can cause these: beyond a limit they are counted
   * and not kept one by one.
   */
  recordBounded(deed: Deed): void;
  /** Called with rows once they are committed. */
  onRecord(listener: (rows: readonly AuditRow[]) => void): void;
  /** Writes what waits; the database is about to be closed. */
  flush(): Promise<void>;
}

/** Longest text of a name, and of a detail as JSON. */
const longestName = 255;
const longestDetail = 2_000;
const longestDetailText = 200;
const mostDetailItems = 20;
/** Rows of one statement: SQLite takes 32,766 parameters. */
const mostRows = 500;

export function createAuditTrail({
  kysely,
  now,
  instanceName,
  actor = { kind: 'hub' },
  log,
}: {
  readonly kysely: Kysely<Tables>;
  readonly now: () => number;
  readonly instanceName?: string | undefined;
  /** Who acts where no request does; the hub itself unless given. */
  readonly actor?: Actor | undefined;
  readonly log: Logger;
}): AuditTrail {
  const listeners: ((rows: readonly AuditRow[]) => void)[] = [];
  const bounded = createBoundedRecords({ rowOf, write: writeAlone });

  function rowOf({ action, target, result = 'done', detail = {} }: Deed): AuditRow {
    const { kind, name, sessionId, tokenId, address } = currentActor() ?? actor;
    return {
      at: now(),
      actor_kind: kind,
      actor_name: nullable(name),
      session_id: nullable(sessionId),
      token_id: nullable(tokenId),
      address: nullable(address),
      action,
      target_kind: nullable(target?.kind),
      target_name: nullable(target?.name),
      target_part: nullable(target?.part),
      result,
      detail: toDetail(detail),
      instance: nullable(instanceName),
    };
  }

  async function write(on: Kysely<Tables>, rows: readonly AuditRow[]): Promise<void> {
    for (let start = 0; start < rows.length; start += mostRows) {
      const some = rows.slice(start, start + mostRows);
      await on.insertInto('audit').values(some).execute();
    }
    if (rows.length > 0) afterCommit(on, () => tell(rows));
  }

  function tell(rows: readonly AuditRow[]): void {
    for (const listener of listeners) listener(rows);
  }

  async function writeAlone(rows: readonly AuditRow[]): Promise<void> {
    try {
      await write(kysely, rows);
    } catch (error) {
      const actions = [...new Set(rows.map(({ action }) => action))];
      log.error({ err: error, actions }, 'the audit log could not be written');
    }
  }

  return {
    record: (on, ...deeds) => write(on, deeds.map(rowOf)),
    async recordNewUsers<Row extends { readonly id: string }>(
      change: Compilable<Row>,
      deeds: ReadonlyMap<string, Deed>,
    ) {
      const rowsById = new Map([...deeds].map(([id, deed]) => [id, rowOf(deed)]));
      const values = [...rowsById].map(([id, row]) => [...columns.map((name) => row[name]), id]);
      const following = { sql: recordUsersSql, parameters: [JSON.stringify(values)] };
      const query: CompiledQuery<Row> & { following: typeof following } = {
        ...change.compile(),
        following,
      };
      const { rows } = await kysely.executeQuery<Row>(query);
      tell(rows.flatMap(({ id }) => rowsById.get(id) ?? []));
      return rows;
    },
    recordAlone: (...deeds) => writeAlone(deeds.map(rowOf)),
    recordBounded: (deed) => bounded.add(deed),
    onRecord(listener) {
      listeners.push(listener);
    },
    flush: () => bounded.flush(),
  };
}

const columns = [
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

/** Each row of the list has its columns in order, and the id of its user. */
const recordUsersSql = `insert into audit (${columns.join(', ')})
  select ${columns.map((_, index) => `value ->> ${index}`).join(', ')} from json_each(?)
  where value ->> ${columns.length} in (select id from users)`;

function nullable(text: string | undefined): string | null {
  return text === undefined ? null : storable(text, longestName);
}

/** A text as every database takes it; names in refused requests may be anything. */
function storable(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/** JSON of limited size: what is too long is cut short, and what cannot be is left out. */
function toDetail(detail: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(detail, (_key, value: unknown) => {
    if (typeof value === 'string') return storable(value, longestDetailText);
    if (Array.isArray(value) && value.length > mostDetailItems) {
      return [...value.slice(0, mostDetailItems), `and ${value.length - mostDetailItems} more`];
    }
    return value;
  });
  return text.length <= longestDetail ? text : '{"too_long":true}';
}
