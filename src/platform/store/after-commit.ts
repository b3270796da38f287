import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/** What waits for the end of a transaction. */
interface Ending {
  last: Last<unknown> | undefined;
  readonly afterCommit: (() => void)[];
}

interface Last<Item> {
  readonly items: Item[];
  readonly work: LastWork<Item>;
}

/** Done to everything that was left for the end of a transaction. */
type LastWork<Item> = (on: Kysely<Tables>, items: readonly Item[]) => Promise<void>;

const endings = new WeakMap<Kysely<Tables>, Ending>();

/**
 * Runs work in one transaction, with the last thing that was left for its end, and then, once it is committed, what was
 * put off until then.
 */
export async function inTransaction<Result>(
  kysely: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  const ending: Ending = { last: undefined, afterCommit: [] };
  const result = await kysely.transaction().execute(async (transaction) => {
    endings.set(transaction, ending);
    const done = await work(transaction);
    const { last } = ending;
    if (last !== undefined) await last.work(transaction, last.items);
    return done;
  });
  for (const each of ending.afterCommit) each();
  return result;
}

/**
 * Leaves something for the end of a transaction, which fails with it; nothing comes after it. False outside of a
 * transaction, and where other work is left for its end already.
 */
export function beforeCommit<Item>(
  on: Kysely<Tables>,
  items: Item[],
  work: LastWork<Item>,
): boolean {
  const ending = endings.get(on);
  if (ending === undefined) return false;
  if (ending.last === undefined) {
    ending.last = { items, work: work as LastWork<unknown> };
    return true;
  }
  if (ending.last.work !== (work as LastWork<unknown>)) return false;
  ending.last.items.push(...items);
  return true;
}

/** Calls back when the transaction is committed, and never when it is not; at once outside of one. */
export function afterCommit(on: Kysely<Tables>, callback: () => void): void {
  const ending = endings.get(on);
  if (ending === undefined) callback();
  else ending.afterCommit.push(callback);
}
