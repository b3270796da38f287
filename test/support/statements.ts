import { type Kysely, sql } from 'kysely';
import { StatementRunner } from '../../src/platform/store/sqlite-engine.ts';
import type { Tables } from '../../src/platform/store/tables.ts';

/** Watches what hubs and stores of this process ask of SQLite in the main thread. */
export interface StatementWatch extends Disposable {
  /** The text of every statement that some work runs. */
  during(work: () => Promise<unknown>): Promise<string[]>;
}

/**
 * Watches the statements of the main thread until it is disposed of: all of a database in memory, and
 * of one in a file everything that is read outside a transaction.
 */
export function watchStatements(): StatementWatch {
  const { prototype } = StatementRunner;
  const original = prototype.run;
  const statements: string[] = [];
  prototype.run = function (...statement) {
    statements.push(statement[0]);
    return original.apply(this, statement);
  };
  return {
    async during(work) {
      const before = statements.length;
      await work();
      return statements.slice(before);
    },
    [Symbol.dispose]() {
      prototype.run = original;
    },
  };
}

/** How SQLite would run a statement, in its own words, the steps separated by semicolons. */
export async function explainQueryPlan(
  { kysely }: { readonly kysely: Kysely<Tables> },
  statement: string,
): Promise<string> {
  const plan = sql<{ detail: string }>`explain query plan ${sql.raw(statement)}`;
  const { rows } = await plan.execute(kysely);
  return rows.map(({ detail }) => detail).join('; ');
}
