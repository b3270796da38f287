import type { Kysely } from 'kysely';
import type { HubDatabase } from './database.ts';
import type { Tables } from './tables.ts';

/**
 * Makes every other transaction that takes this lock wait for the end of this one, so that what a user has
 * can be counted before more is added. Transactions of SQLite come one after another anyway.
 */
export async function lockUser(
  transaction: Kysely<Tables>,
  { dialect }: Pick<HubDatabase, 'dialect'>,
  userId: string,
): Promise<void> {
  if (dialect === 'sqlite') return;
  await transaction
    .selectFrom('users')
    .select('id')
    .where('id', '=', userId)
    // Weaker than an update of the key: rows that refer to the user can be added meanwhile.
    .forNoKeyUpdate()
    .execute();
}
