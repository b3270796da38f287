import type { Kysely } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { text } from '../../platform/texts/text.ts';

export interface FactorRemoval {
  /** Whether the user may be left without a second factor. */
  readonly mayBeLast: boolean;
}

/**
 * Removes a second factor of a user in a transaction, of which one runs at a time for each user: of two removals at
 * once, the second counts what the first has left. Throws `conflict`, and removes nothing, when none would be left.
 * The last one takes the recovery codes along.
 */
export function removeFactor(
  database: Pick<HubDatabase, 'dialect' | 'transaction'>,
  userId: string,
  { mayBeLast }: FactorRemoval,
  /** Says whether there was something to remove. */
  work: (transaction: Kysely<Tables>) => Promise<boolean>,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    await lockUser(transaction, database, userId);
    if (!(await work(transaction))) return false;
    if (await hasFactor(transaction, userId)) return true;
    if (!mayBeLast) {
      throw new HubError(
        'conflict',
        text`Your account needs a second factor, and this is the only one.`,
        { hint: text`Set up another one first.` },
      );
    }
    await transaction.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
    return true;
  });
}

export async function hasFactor(on: Kysely<Tables>, userId: string): Promise<boolean> {
  const found = await on
    .selectFrom('second_factors')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .unionAll(on.selectFrom('passkeys').select('user_id').where('user_id', '=', userId))
    .executeTakeFirst();
  return found !== undefined;
}
