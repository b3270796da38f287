import type { Transaction } from 'kysely';

/** One step from a version of the schema to the next. */
export interface Migration {
  readonly name: string;
  up(transaction: Transaction<unknown>, dialect: 'sqlite' | 'postgres'): Promise<void>;
}
