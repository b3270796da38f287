import type { Kysely } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf } from '../../platform/store/queries.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { recordOfUser } from '../../platform/store/user-name-of.ts';
import { hasFactor } from './factor-removal-store.ts';

/** The recovery codes of users with a second factor, as hashes; the last factor takes them along. */
export interface RecoveryCodeStore {
  countOfUser(userId: string): Promise<number>;
  /** Uses up a code; false when there is none with this hash. Of several at once, one gets true. */
  take(userId: string, codeHash: string): Promise<boolean>;
  /** Puts others in the place of all; false for a user without a second factor. */
  replace(userId: string, codeHashes: readonly string[]): Promise<boolean>;
}

export function createRecoveryCodeStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'audit'>,
): RecoveryCodeStore {
  return {
    countOfUser: (userId) => countIn(database.kysely, userId),

    take: (userId, codeHash) =>
      database.transaction(async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('recovery_codes')
          .where('user_id', '=', userId)
          .where('code_hash', '=', codeHash)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        const left = await countIn(transaction, userId);
        await recordOfUser(database, transaction, userId, {
          action: 'second_factor.use_recovery_code',
          detail: { left },
        });
        return true;
      }),

    replace: (userId, codeHashes) =>
      database.transaction(async (transaction) => {
        await lockUser(transaction, database, userId);
        if (!(await hasFactor(transaction, userId))) return false;
        await transaction.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
        await insert(transaction, userId, codeHashes);
        await recordOfUser(database, transaction, userId, { action: 'second_factor.renew_codes' });
        return true;
      }),
  };
}

/** What came of a second factor that was set up. */
export interface FactorAdded {
  /** Whether the codes that were given are now those of the user, who had none. */
  readonly issuesRecoveryCodes: boolean;
}

/**
 * Gives a user whose second factor has just been set up their recovery codes, unless there are some, in the transaction
 * of that, which has locked the user.
 */
export async function issueRecoveryCodes(
  database: Pick<HubDatabase, 'audit'>,
  transaction: Kysely<Tables>,
  userId: string,
  codeHashes: readonly string[],
): Promise<FactorAdded> {
  if ((await countIn(transaction, userId)) > 0) return { issuesRecoveryCodes: false };
  await insert(transaction, userId, codeHashes);
  await recordOfUser(database, transaction, userId, { action: 'second_factor.renew_codes' });
  return { issuesRecoveryCodes: true };
}

function countIn(on: Kysely<Tables>, userId: string): Promise<number> {
  return countOf(on.selectFrom('recovery_codes').where('user_id', '=', userId));
}

async function insert(
  transaction: Kysely<Tables>,
  userId: string,
  codeHashes: readonly string[],
): Promise<void> {
  if (codeHashes.length === 0) return;
  const rows = codeHashes.map((code_hash) => ({ user_id: userId, code_hash }));
  await transaction.insertInto('recovery_codes').values(rows).execute();
}
