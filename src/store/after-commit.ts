import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/** What waits for the end of a transaction. */
interface Ending {
  beforeCommit: (() => Promise<void>) | undefined;
  readonly afterCommit: (() => void)[];
}

const endings = new WeakMap<Kysely<Tables>, Ending>();

/**
 * Runs work in one transaction, with the last thing that was left for its end, and then, once it is committed, what was
 * put off until then.
 */
export async function inTransaction<Result>(
  kysely: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  const ending: Ending = { beforeCommit: undefined, afterCommit: [] };
  const result = await kysely.transaction().execute(async (transaction) => {
    endings.set(transaction, ending);
    const done = await work(transaction);
    await ending.beforeCommit?.();
    return done;
  });
  for (const each of ending.afterCommit) each();
  return result;
}

/**
 * Leaves one last thing for the end of a transaction, which fails with it; nothing comes after it. False outside of a
 * transaction, and where there is one already.
 */
export function beforeCommit(on: Kysely<Tables>, callback: () => Promise<void>): boolean {
  const ending = endings.get(on);
  if (ending === undefined || ending.beforeCommit !== undefined) return false;
  ending.beforeCommit = callback;
  return true;
}

/** Calls back when the transaction is committed, and never when it is not; at once outside of one. */
export function afterCommit(on: Kysely<Tables>, callback: () => void): void {
  const ending = endings.get(on);
  if (ending === undefined) callback();
  else ending.afterCommit.push(callback);
}
