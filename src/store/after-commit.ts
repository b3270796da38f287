import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './tables.ts';

const waiting = new WeakMap<Kysely<Tables>, (() => void)[]>();

/** Runs work in one transaction, and then, once it is committed, what was put off until then. */
export async function inTransaction<Result>(
  kysely: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  const putOff: (() => void)[] = [];
  const result = await kysely.transaction().execute((transaction) => {
    waiting.set(transaction, putOff);
    return work(transaction);
  });
  for (const each of putOff) each();
  return result;
}

/** Calls back when the transaction is committed, and never when it is not; at once outside of one. */
export function afterCommit(on: Kysely<Tables>, callback: () => void): void {
  const putOff = waiting.get(on);
  if (putOff === undefined) callback();
  else putOff.push(callback);
}
