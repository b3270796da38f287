import type { Sealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { recordOfUser, withoutUser } from '../../platform/store/user-name-of.ts';
import { text } from '../../platform/texts/text.ts';
import { type FactorRemoval, removeFactor } from './factor-removal-store.ts';
import { type FactorAdded, issueRecoveryCodes } from './recovery-code-store.ts';

/** A user's authenticator app: one-time codes by time (RFC 6238). */
export interface SecondFactor {
  readonly totpSecret: string;
}

export interface SecondFactorStore {
  /** Throws `storage_unavailable` when no current key opens the secret: never lets it be skipped. */
  find(userId: string): Promise<SecondFactor | undefined>;
  /**
   * Turns it on with the time step of the first code, and gives the user the recovery codes unless there are some.
   * Undefined when it is on already. Throws `not_found` when there is no such user.
   */
  add(
    userId: string,
    options: {
      readonly totpSecret: string;
      readonly step: number;
      readonly recoveryCodeHashes: readonly string[];
      readonly now: Date;
    },
  ): Promise<FactorAdded | undefined>;
  /** Accepts a time step once; false for it or an earlier one (RFC 6238 §5.2). */
  takeStep(userId: string, step: number): Promise<boolean>;
  /** Removes the second factor; false when there was none. Throws `conflict` for the last one of a user who needs one. */
  delete(userId: string, removal: FactorRemoval): Promise<boolean>;
}

export function createSecondFactorStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'audit'>,
  { sealer }: { readonly sealer: Sealer },
): SecondFactorStore {
  const { kysely } = database;

  return {
    async find(userId) {
      const row = await kysely
        .selectFrom('second_factors')
        .selectAll()
        .where('user_id', '=', userId)
        .where('confirmed_at', 'is not', null)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const totpSecret = sealer.open(row.totp_secret_encrypted, totpSecretContext(userId));
      if (totpSecret === undefined) {
        throw new HubError('storage_unavailable', text`The second factor cannot be read.`, {
          hint: text`The key that encrypted it is no longer configured. Tell the operator of this hub.`,
        });
      }
      return { totpSecret };
    },

    add: (userId, { totpSecret, step, recoveryCodeHashes, now }) =>
      database.transaction(async (transaction) => {
        await lockUser(transaction, database, userId);
        const values = {
          totp_secret_encrypted: sealer.seal(totpSecret, totpSecretContext(userId)),
          confirmed_at: now.getTime(),
          last_step: step,
        };
        const { numInsertedOrUpdatedRows } = await transaction
          .insertInto('second_factors')
          .values({ user_id: userId, ...values })
          .onConflict((conflict) =>
            conflict
              .column('user_id')
              .doUpdateSet(values)
              .where('second_factors.confirmed_at', 'is', null),
          )
          .executeTakeFirst()
          .catch((error: unknown) => {
            throw withoutUser(error);
          });
        if (numInsertedOrUpdatedRows === 0n) return undefined;
        await recordOfUser(database, transaction, userId, { action: 'second_factor.enable' });
        return await issueRecoveryCodes(database, transaction, userId, recoveryCodeHashes);
      }),

    async takeStep(userId, step) {
      const { numUpdatedRows } = await kysely
        .updateTable('second_factors')
        .set({ last_step: step })
        .where('user_id', '=', userId)
        .where((where) => where.or([where('last_step', 'is', null), where('last_step', '<', step)]))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    delete: (userId, removal) =>
      removeFactor(database, userId, removal, async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('second_factors')
          .where('user_id', '=', userId)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await recordOfUser(database, transaction, userId, { action: 'second_factor.remove' });
        return true;
      }),
  };
}

/** Binds the ciphertext to its row: moved to another user it does not open. */
export function totpSecretContext(userId: string): string {
  return `totp-secret:${userId}`;
}
