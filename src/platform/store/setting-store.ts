import type { Kysely } from 'kysely';
import type { HubDatabase } from './database.ts';
import type { Tables } from './tables.ts';

/** Single small values that outlive a restart. */
export interface SettingStore {
  find(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
  /**
   * Keeps the value unless there is one, and returns the one that is kept: of several processes
   * that make the same value at once, all go on with the same.
   */
  keep(key: string, value: string): Promise<string>;
  /** Removes a value if it is this one; of several that try, in whatever process, one succeeds. */
  take(key: string, value: string): Promise<boolean>;
}

export function createSettingStore({ kysely }: Pick<HubDatabase, 'kysely'>): SettingStore {
  async function find(key: string): Promise<string | undefined> {
    const row = await kysely
      .selectFrom('settings')
      .select('value')
      .where('key', '=', key)
      .executeTakeFirst();
    return row?.value;
  }

  return {
    find,

    async set(key, value) {
      await kysely
        .insertInto('settings')
        .values({ key, value })
        .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
        .execute();
    },

    async keep(key, value) {
      await kysely
        .insertInto('settings')
        .values({ key, value })
        .onConflict((conflict) => conflict.column('key').doNothing())
        .execute();
      return (await find(key)) ?? value;
    },

    async take(key, value) {
      const { numDeletedRows } = await kysely
        .deleteFrom('settings')
        .where('key', '=', key)
        .where('value', '=', value)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
  };
}

/** The key of a setting of one user, which goes with the user. */
export function settingOfUser(userId: string, name: string): string {
  return `user:${userId}:${name}`;
}

export async function deleteSettingsOf(on: Kysely<Tables>, userId: string): Promise<void> {
  await on.deleteFrom('settings').where('key', 'like', settingOfUser(userId, '%')).execute();
}
