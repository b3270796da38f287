import { type Kysely, sql } from 'kysely';
import { hashSecret } from '../crypto/hash.ts';
import type { SharedAdapter } from './keyv-space.ts';
import { databaseTimeMs } from './lease-clock.ts';
import type { Tables } from './tables.ts';

const maxKeyLength = 300;
const pageSize = 500;

/** The one table that expiring state needs. */
export type KeyvTables = Pick<Tables, 'keyv'>;

export interface KeyvDatabaseAdapterOptions {
  readonly kysely: Kysely<KeyvTables>;
  readonly dialect: 'sqlite' | 'postgres';
  /** Keeps the keys of one use apart from those of another. */
  readonly namespace: string;
}

/** A Keyv store over the `keyv` table; what has expired is treated as deleted. */
export function createKeyvDatabaseAdapter({
  kysely,
  dialect,
  namespace,
}: KeyvDatabaseAdapterOptions): SharedAdapter {
  const prefix = `${namespace}:`;
  // The character after the colon: all keys with the prefix stand between the two.
  const end = `${namespace};`;
  const now = databaseTimeMs({ dialect });
  const endAfter = (lifetimeMs: number) => sql<number>`${now} + ${sql.lit(Math.ceil(lifetimeMs))}`;

  function storedKey(key: string): string {
    // An index entry has a limit, and a key may come from outside.
    return prefix + (key.length > maxKeyLength ? `#${hashSecret(key)}` : key);
  }

  function selectLiving() {
    return kysely
      .selectFrom('keyv')
      .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]));
  }

  async function getMany<Value>(keys: string[]): Promise<(Value | undefined)[]> {
    if (keys.length === 0) return [];
    const stored = keys.map(storedKey);
    const rows = await selectLiving()
      .select(['key', 'value'])
      .where('key', 'in', [...new Set(stored)])
      .execute();
    const values = new Map(rows.map(({ key, value }) => [key, value as Value]));
    return stored.map((key) => values.get(key));
  }

  async function deleteKeys(keys: readonly string[]): Promise<boolean> {
    if (keys.length === 0) return false;
    const { numDeletedRows } = await kysely
      .deleteFrom('keyv')
      .where('key', 'in', keys.map(storedKey))
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  const adapter: SharedAdapter = {
    // Keyv reads here whether it may iterate.
    opts: { dialect, url: '' },
    namespace,

    async get<Value>(key: string) {
      const row = await selectLiving()
        .select('value')
        .where('key', '=', storedKey(key))
        .executeTakeFirst();
      return row?.value as Value | undefined;
    },

    getMany,

    async set(key: string, value: string, lifetimeMs?: number) {
      const values = {
        value,
        expires_at: lifetimeMs === undefined ? null : endAfter(lifetimeMs),
      };
      await kysely
        .insertInto('keyv')
        .values({ key: storedKey(key), ...values })
        .onConflict((conflict) => conflict.column('key').doUpdateSet(values))
        .execute();
    },

    async replace(key: string, former: string | undefined, next) {
      const stored = storedKey(key);
      if (former === undefined) {
        if (next === undefined) return true;
        const values = { value: next.text, expires_at: endAfter(next.lifetimeMs) };
        const { numInsertedOrUpdatedRows } = await kysely
          .insertInto('keyv')
          .values({ key: stored, ...values })
          .onConflict((conflict) =>
            conflict.column('key').doUpdateSet(values).where('keyv.expires_at', '<=', now),
          )
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }
      if (next === undefined) {
        const { numDeletedRows } = await kysely
          .deleteFrom('keyv')
          .where('key', '=', stored)
          .where('value', '=', former)
          .executeTakeFirst();
        return numDeletedRows === 1n;
      }
      const { numUpdatedRows } = await kysely
        .updateTable('keyv')
        .set({ value: next.text, expires_at: endAfter(next.lifetimeMs) })
        .where('key', '=', stored)
        .where('value', '=', former)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    /** True for the one who deleted it: with this, something is taken once. */
    async delete(key: string) {
      const { numDeletedRows } = await kysely
        .deleteFrom('keyv')
        .where('key', '=', storedKey(key))
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },

    deleteMany: deleteKeys,

    async clear() {
      await kysely.deleteFrom('keyv').where('key', '>=', prefix).where('key', '<', end).execute();
    },

    async has(key: string) {
      const row = await selectLiving()
        .select('key')
        .where('key', '=', storedKey(key))
        .executeTakeFirst();
      return row !== undefined;
    },

    async *iterator<Value>(): AsyncGenerator<(string | Awaited<Value> | undefined)[], void> {
      let last = prefix;
      for (;;) {
        const rows = await selectLiving()
          .select(['key', 'value'])
          .where('key', '>', last)
          .where('key', '<', end)
          .orderBy('key')
          .limit(pageSize)
          .execute();
        for (const { key, value } of rows) {
          yield [key.slice(prefix.length), value as Awaited<Value>];
        }
        const lastRow = rows.at(-1);
        if (lastRow === undefined || rows.length < pageSize) return;
        last = lastRow.key;
      }
    },

    on() {
      // Errors are thrown to the one who asked; nothing is emitted.
      return adapter;
    },
  };
  return adapter;
}

/** Deletes at most `limit` expired rows and tells how many there were. */
export async function purgeExpiredKeys(
  { kysely, dialect }: Pick<KeyvDatabaseAdapterOptions, 'kysely' | 'dialect'>,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await kysely
    .deleteFrom('keyv')
    .where('key', 'in', (select) =>
      select
        .selectFrom('keyv')
        .select('key')
        .where('expires_at', '<=', databaseTimeMs({ dialect }))
        .orderBy('expires_at')
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
