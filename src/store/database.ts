import type { Kysely } from 'kysely';
import type { ChangeListener } from './change-listeners.ts';
import type { ChangeSubject } from './change-subject.ts';
import type { Tables } from './tables.ts';

/** The hub's durable state. */
export interface HubDatabase extends AsyncDisposable {
  readonly kysely: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * Runs work in one transaction; everything or nothing. Inside, use only the transaction that is
   * handed in: SQLite has one connection, and a query past the transaction would wait for its end.
   */
  transaction<T>(work: (transaction: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** Why nothing can be written, as far as that is known without a query. */
  problem(): string | undefined;
  /**
   * Tells every process on this database (this one at once) that users, roles, groups, sessions or
   * tokens changed. Call it after the change is committed, and with a subject only where nothing
   * else can have lost a right.
   */
  announceChange(subject?: ChangeSubject): void;
  /** Called after any announceChange, here or in another process. Returns how to stop listening. */
  onChange(listener: ChangeListener): () => void;
}
