import type { CompiledQuery, Kysely } from 'kysely';
import type { Logger } from 'pino';
import { type Actor, currentActor } from '../audit/actor.ts';
import type { AuditEvent } from '../audit/audit-event.ts';
import { createAuditStaging, packRow } from './audit-staging.ts';
import { createBoundedRecords } from './bounded-records.ts';
import { afterCommit, beforeCommit } from './queries.ts';
import type { Statement } from './sqlite-engine.ts';
import type { AuditRow, Tables } from './tables.ts';

interface NewUser {
  readonly id: string;
  readonly name: string;
}

/** A statement that inserts users: each by itself on SQLite, and all at once, returning those inserted, on PostgreSQL. */
export type UserInsertion = CompiledQuery & Pick<Statement, 'each'>;

/** Called with a row once it is committed. */
type RecordListener = (row: AuditRow) => void;

/** Where actions are recorded. Nothing changes or deletes a row but the purge of old ones. */
export interface AuditTrail {
  /**
   * Records actions of the current actor. Within the transaction of a action it is recorded if and only if it
   * is done.
   */
  record(on: Kysely<Tables>, ...auditEvents: readonly AuditEvent[]): Promise<void>;
  /**
   * Creates users and records them in one row, or does neither. Returns those who were created.
   */
  recordNewUsers<User extends NewUser>(
    insertion: UserInsertion,
    auditEvent: Pick<AuditEvent, 'action' | 'detail'>,
    /** Those to be inserted. */
    users: readonly User[],
  ): Promise<User[]>;
  /** Records what has no transaction. It is done already: that it cannot be recorded is logged, not thrown. */
  recordAlone(...auditEvents: readonly AuditEvent[]): Promise<void>;
  /**
   * Records a refusal or failure a moment later. Anyone can cause these: beyond a limit they are counted
   * and not kept one by one.
   */
  recordBounded(auditEvent: AuditEvent): void;
  onRecord(listener: RecordListener): void;
  /** Makes everything that is recorded by now be found. Rejects when the database cannot be written. */
  catchUp(): Promise<void>;
  /** Writes what waits; the database is about to be closed. */
  flush(): Promise<void>;
}

/** Who acts where no request or command does. */
const hubItself: Actor = { kind: 'hub' };

const maxNameLength = 255;
const clockErrorMs = 1_000;
/** Rows of one statement: SQLite takes 32,766 parameters. */
const maxRows = 500;

export function createAuditTrail({
  kysely,
  dialect,
  now,
  instanceName,
  log,
}: {
  readonly kysely: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  readonly now: () => number;
  readonly instanceName?: string | undefined;
  readonly log: Logger;
}): AuditTrail {
  const listeners: RecordListener[] = [];
  let latestMs = 0;
  const staging = createAuditStaging({ kysely, dialect, log });
  const bounded = createBoundedRecords({ rowOf, write: writeAlone });

  /** Actions keep their order when the clock, of which several hubs share one, is put right by a little. */
  function tellTime(): number {
    const time = now();
    latestMs = latestMs - time < clockErrorMs ? Math.max(latestMs, time) : time;
    return latestMs;
  }

  function rowOf({
    action,
    target,
    users = [],
    result = 'done',
    detail = {},
  }: AuditEvent): AuditRow {
    const { kind, name, sessionId, tokenId, address } = currentActor() ?? hubItself;
    return {
      at: tellTime(),
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
      users: users.length === 0 ? null : JSON.stringify(users.map((name) => nullable(name))),
      user_count: Math.max(1, users.length),
    };
  }

  const insertOne = kysely.insertInto('audit_arrivals').values({ entry: '' }).compile();

  function insertionOf(rows: readonly AuditRow[]): CompiledQuery {
    const [first] = rows;
    if (rows.length === 1 && first?.users === null) {
      return { ...insertOne, parameters: [packRow(first)] };
    }
    const values = rows.map((row) => ({
      entry: packRow(row),
      users: row.users ?? null,
      user_count: row.user_count,
    }));
    return kysely.insertInto('audit_arrivals').values(values).compile();
  }

  /** `isLast`: nothing else follows in its transaction. */
  async function write(
    on: Kysely<Tables>,
    rows: readonly AuditRow[],
    { isLast = false } = {},
  ): Promise<void> {
    for (let start = 0; start < rows.length; start += maxRows) {
      const insertion = insertionOf(rows.slice(start, start + maxRows));
      const query = { ...insertion, isLast: isLast && start + maxRows >= rows.length };
      await on.executeQuery(query);
    }
    if (rows.length > 0) afterCommit(on, () => tell(rows));
  }

  const writeLast = (on: Kysely<Tables>, rows: readonly AuditRow[]) =>
    write(on, rows, { isLast: true });

  function tell(rows: readonly AuditRow[]): void {
    staging.moveSoon();
    for (const row of rows) for (const listener of listeners) listener(row);
  }

  async function writeAlone(rows: readonly AuditRow[]): Promise<void> {
    try {
      await write(kysely, rows);
    } catch (error) {
      const actions = [...new Set(rows.map(({ action }) => action))];
      log.error({ err: error, actions }, 'audit log could not be written');
    }
  }

  return {
    async record(on, ...auditEvents) {
      const rows = auditEvents.map(rowOf);
      if (!beforeCommit(on, rows, writeLast)) await write(on, rows);
    },
    async recordNewUsers<User extends NewUser>(
      insertion: UserInsertion,
      auditEvent: Pick<AuditEvent, 'action' | 'detail'>,
      users: readonly User[],
    ) {
      const { action, detail = {} } = auditEvent;
      const like = rowOf({ action, detail });
      const made = await insertUsers(
        kysely,
        recordingUsers(insertion, { dialect, like, users }),
        users,
      );
      if (made.length > 0) {
        tell([{ ...like, users: JSON.stringify(made.map(({ name }) => name)) }]);
      }
      return made;
    },
    recordAlone: (...auditEvents) => writeAlone(auditEvents.map(rowOf)),
    recordBounded: (auditEvent) => bounded.add(auditEvent),
    onRecord(listener) {
      listeners.push(listener);
    },
    catchUp: staging.move,
    async flush() {
      await bounded.flush();
      staging.stop();
    },
  };
}

/** Inserts users and returns those who were not there yet. */
export async function insertUsers<User extends NewUser>(
  kysely: Kysely<Tables>,
  insertion: UserInsertion,
  users: readonly User[],
): Promise<User[]> {
  const { rows } = await kysely.executeQuery<number | NewUser>(insertion);
  if (rows.length === users.length) return [...users];
  const made = new Set(rows.map((row) => (typeof row === 'number' ? users[row]?.id : row.id)));
  return users.filter(({ id }) => made.has(id));
}

const into = 'insert into audit_arrivals (users, user_count, entry)';
/** Follows the insertion of users, of whom some may be there already: mostly none is, and none need be found. */
const followingUsers = `with inserted (made) as (select ?) ${into}
  select case when made = ? then ? else (
    select json_group_array(users.name) from json_each(?) as list join users on users.id = list.value
  ) end, made, ? from inserted where made > 0`;

/** A statement that creates users, with a row of the audit log like the one given for all of them. */
function recordingUsers(
  change: UserInsertion,
  {
    dialect,
    like,
    users,
  }: {
    readonly dialect: 'sqlite' | 'postgres';
    readonly like: AuditRow;
    readonly users: readonly NewUser[];
  },
): UserInsertion & { readonly following?: object } {
  const entry = packRow(like);
  if (dialect === 'sqlite') {
    const names = JSON.stringify(users.map(({ name }) => name));
    const ids = JSON.stringify(users.map(({ id }) => id));
    const parameters = [users.length, names, ids, entry];
    return { ...change, following: { sql: followingUsers, parameters } };
  }
  const given = `cast($${change.parameters.length + 1} as text)`;
  return {
    ...change,
    sql: `with made as (${change.sql}),
      recorded as (${into} select json_agg(made.name)::text, count(*), ${given}
        from made having count(*) > 0)
      select * from made`,
    parameters: [...change.parameters, entry],
  };
}

function nullable(text: string | undefined): string | null {
  return text === undefined ? null : storable(text, maxNameLength);
}

/** Longest detail as JSON. */
const maxDetailLength = 2_000;
const maxTextLength = 200;
const maxItems = 20;

/** What a database may refuse: NUL, and halves of surrogate pairs. */
const doubtful = /[\0\uD800-\uDFFF]/;
/** The same as JSON writes it. */
const doubtfulJson = /\\u(?:0000|d[89a-f])/;

/** A text as every database takes it; names in refused requests may be anything. */
export function storable(text: string, longest: number): string {
  if (text.length <= longest && !doubtful.test(text)) return text;
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/**
 * JSON of limited size: of what is longer, each part is cut short, and says how much is left out. The more there is, the
 * less is kept of each, so that something is known of all of them.
 */
export function toDetail(detail: Readonly<Record<string, unknown>>): string {
  const whole = JSON.stringify(detail);
  if (whole.length <= maxDetailLength && !doubtfulJson.test(whole)) return whole;
  for (let share = 1; share <= maxItems; share *= 2) {
    // Not by a replacer: JSON takes several times as long when it asks for each value.
    const text = JSON.stringify(
      shorten(detail, { items: maxItems / share, characters: maxTextLength / share }),
    );
    if (text.length <= maxDetailLength) return text;
  }
  return '{"too_long":true}';
}

function shorten(value: unknown, max: { items: number; characters: number }): unknown {
  if (typeof value === 'string') return storable(value, max.characters);
  if (typeof value !== 'object' || value === null) return value;
  if (hasJson(value)) return shorten(value.toJSON(), max);
  const items = Math.floor(max.items);
  if (Array.isArray(value)) {
    const left = value.length > items ? [`and ${value.length - items} more`] : [];
    return [...value.slice(0, items), ...left].map((each) => shorten(each, max));
  }
  const members = Object.entries(value);
  const kept = members.slice(0, items).map(([name, each]) => [name, shorten(each, max)]);
  if (members.length > items) kept.push(['and_more', members.length - items]);
  return Object.fromEntries(kept);
}

function hasJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
