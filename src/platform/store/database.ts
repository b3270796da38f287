import type { Kysely } from 'kysely';
import type { Text } from '../texts/text.ts';
import type { workLocks } from './advisory-locks.ts';
import type { AuditTrail } from './audit-trail.ts';
import type { AnnouncedSubject, ChangeListeners } from './change-subject.ts';
import type { Tables } from './tables.ts';

/** How news of changes comes from other processes. */
export interface ChangeFeed {
  /** The moment of the monotonic clock up to which every change, of whatever process, was announced here. */
  knownAtMs(): number;
  /** Whether that is so long ago that nothing remembered may be used (`Proxy.max_staleness`). */
  isLost(): boolean;
  /** How often the connection was found dead and replaced. */
  readonly lossCount: number;
}

/** So many rows are walked over in some 10 ms: fewer take less time than to ask a thread, more would keep others waiting. */
export const manyRows = 20_000;

/** The hub's durable state. */
export interface HubDatabase extends AsyncDisposable {
  readonly kysely: Kysely<Tables>;
  /** For single statements that must not wait for a connection behind others, such as the renewal of a lease. */
  readonly urgent: Kysely<Tables>;
  /** For queries that walk over `manyRows` or more: SQLite answers them in a thread of its own. */
  readonly longReads: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * Runs work in one transaction; everything or nothing. Inside, use only the transaction that is
   * handed in: SQLite has one connection, and a query past the transaction would wait for its end.
   * PostgreSQL ends one of two transactions that wait for each other: `work` is done again then, so it must leave
   * nothing outside of the database.
   */
  transaction<T>(work: (transaction: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** Where actions are recorded, in the transaction of each. */
  readonly audit: AuditTrail;
  /**
   * The time of day, in milliseconds since 1970, that every process on this database shares: by the clock of PostgreSQL,
   * as far as it is known. What one process lets live until a time, another must not see ended before.
   */
  now(): number;
  /**
   * Does work unless another process on this database does it now; then returns undefined. A process that dies lets the
   * next one have it at once.
   */
  whileAlone<Result>(
    work: keyof typeof workLocks,
    run: () => Promise<Result>,
  ): Promise<Result | undefined>;
  /** Why nothing can be written, as far as that is known without a query. */
  problem(): Text | undefined;
  /**
   * Tells this process at once what changed; other processes find it in the database by themselves. Call it after the
   * change is committed, with a subject that covers everything that anyone can have lost by it.
   */
  announceChange(subject: AnnouncedSubject): void;
  /** Tells every process something that no change of a table says. */
  requestReload(instanceId: string): Promise<void>;
  /**
   * Calls back after any announceChange and any change by another process, perhaps more than once for one; where
   * `kinds` are given, for those alone. Returns how to stop listening.
   */
  onChange: ChangeListeners['add'];
  readonly changeFeed: ChangeFeed;
  /**
   * A number that grows with each commit of whatever process; undefined where telling it would take as long as asking
   * again, or it cannot be told just now.
   */
  contentVersion(): number | undefined;
}
