import type { ScopeSet } from '../identity/rbac/scope.ts';
import { createAnswerCache } from '../platform/concurrency/answer-cache.ts';
import type { JsonText } from '../platform/protocol/json-text.ts';
import type { ChangeWatch } from '../platform/store/change-aware-cache.ts';
import type { HubDatabase } from '../platform/store/database.ts';

/** A page of a list, and how long the whole list is. */
export interface WrittenPage<Item> {
  readonly items: JsonText<readonly Item[]>;
  readonly total: number;
}

/** Pages that need not be read again while nothing was written. */
export interface CachedPages<Item> {
  /**
   * What `read` gives, or gave a moment ago to a caller with the same scopes. The question says all that the answer
   * depends on beside the database.
   */
  read(
    scopes: ScopeSet,
    question: object,
    read: () => Promise<WrittenPage<Item>>,
  ): Promise<WrittenPage<Item>>;
}

/** What is over without a commit, such as the lease of an instance, shows after this time. */
const cachedMs = 1_000;
const maxBytes = 4 * 1024 * 1024;

/** Remembers nothing where the database cannot tell whether something was written. */
export function createCachedPages<Item>({
  database,
  changes,
  monotonicMs,
}: {
  readonly database: Pick<HubDatabase, 'contentVersion'>;
  readonly changes: Pick<ChangeWatch, 'epoch'>;
  readonly monotonicMs?: () => number;
}): CachedPages<Item> {
  const { contentVersion } = database;
  const numbers = new WeakMap<ScopeSet, number>();
  let count = 0;
  const pages = createAnswerCache<WrittenPage<Item>, never>({
    max: maxBytes,
    sizeOf: ({ items }) => items.bytes.length,
    ttlMs: () => cachedMs,
    ...(monotonicMs === undefined ? {} : { monotonicMs }),
    voiding: {
      // Both only grow, so their sum changes with each. No number equals NaN, itself included.
      epoch: () => (contentVersion() ?? Number.NaN) + changes.epoch(),
      revocationCount: () => 0,
      isRevoked: () => false,
    },
  });

  function numberOf(scopes: ScopeSet): number {
    let number = numbers.get(scopes);
    if (number === undefined) {
      number = count += 1;
      numbers.set(scopes, number);
    }
    return number;
  }

  return {
    read(scopes, question, read) {
      if (contentVersion() === undefined) return read();
      return pages.getOrLoad(`${numberOf(scopes)} ${JSON.stringify(question)}`, read);
    },
  };
}
