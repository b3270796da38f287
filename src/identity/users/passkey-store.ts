import type { Kysely } from 'kysely';
import type { AuditDetail } from '../../platform/audit/detail-labels.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf } from '../../platform/store/queries.ts';
import { isUniqueViolation } from '../../platform/store/storage-error.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { recordOfUser, withoutUser } from '../../platform/store/user-name-of.ts';
import { text } from '../../platform/texts/text.ts';
import { type FactorRemoval, removeFactor } from './factor-removal-store.ts';
import { type FactorAdded, issueRecoveryCodes } from './recovery-code-store.ts';

/** A public key by which a user proves who they are (Web Authentication Level 3). */
export interface Passkey {
  /** Credential id, base64url. */
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  /** COSE key (RFC 9052 §7), base64url. */
  readonly publicKey: string;
  /** Signature counter; 0 for authenticators that have none. */
  readonly signCount: number;
  readonly transports: readonly string[];
  /** Whether it asked for a PIN, a finger or a face when it was added. */
  readonly verifiesUser: boolean;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | undefined;
}

export interface PasskeyStore {
  find(id: string): Promise<Passkey | undefined>;
  /** Oldest first. */
  listOfUser(userId: string): Promise<readonly Passkey[]>;
  countOfUser(userId: string): Promise<number>;
  /**
   * Adds one, and gives its user the recovery codes unless there are some. Throws `conflict` for an id that is known or
   * above the limit, `not_found` without the user.
   */
  add(
    passkey: Omit<Passkey, 'lastUsedAt'>,
    options: { readonly limit: number; readonly recoveryCodeHashes: readonly string[] },
  ): Promise<FactorAdded>;
  /**
   * Records a use; false for a counter that has not grown since, and for a passkey that is gone (Web
   * Authentication Level 3 §7.2, steps 22 and 23).
   */
  recordUse(
    passkey: Pick<Passkey, 'id' | 'userId' | 'name'>,
    use: { readonly signCount: number; readonly at: Date; readonly purpose: string },
  ): Promise<boolean>;
  /** False when the user has no such passkey. */
  rename(userId: string, id: string, name: string): Promise<boolean>;
  /** False when the user has no such passkey. Throws `conflict` for the last second factor of a user who needs one. */
  remove(userId: string, id: string, removal: FactorRemoval): Promise<boolean>;
  /** Removes all of a user, and says how many. */
  removeAllOfUser(userId: string): Promise<number>;
}

export function createPasskeyStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'audit'>,
): PasskeyStore {
  const { kysely } = database;

  const record = (
    transaction: Kysely<Tables>,
    action: `passkey.${'add' | 'rename' | 'remove' | 'use'}`,
    userId: string,
    detail: AuditDetail,
  ) => recordOfUser(database, transaction, userId, { action, detail });

  const countIn = (connection: Kysely<Tables>, userId: string) =>
    countOf(connection.selectFrom('passkeys').where('user_id', '=', userId));

  return {
    async find(id) {
      const row = await kysely
        .selectFrom('passkeys')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst();
      return row && passkeyOf(row);
    },

    async listOfUser(userId) {
      const rows = await kysely
        .selectFrom('passkeys')
        .selectAll()
        .where('user_id', '=', userId)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      return rows.map(passkeyOf);
    },

    countOfUser: (userId) => countIn(kysely, userId),

    async add({ id, userId, name, ...passkey }, { limit, recoveryCodeHashes }) {
      try {
        return await database.transaction(async (transaction) => {
          await lockUser(transaction, database, userId);
          if ((await countIn(transaction, userId)) >= limit) {
            throw new HubError('conflict', text`You have ${limit} passkeys, which is the most.`, {
              hint: text`Remove one that you no longer use.`,
            });
          }
          const row = {
            id,
            user_id: userId,
            name,
            public_key: passkey.publicKey,
            sign_count: passkey.signCount,
            transports: JSON.stringify(passkey.transports),
            verifies_user: passkey.verifiesUser ? 1 : 0,
            created_at: passkey.createdAt.getTime(),
            last_used_at: null,
          };
          await transaction.insertInto('passkeys').values(row).execute();
          await record(transaction, 'passkey.add', userId, { name });
          return await issueRecoveryCodes(database, transaction, userId, recoveryCodeHashes);
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw withoutUser(error);
        throw new HubError('conflict', text`This passkey has been added already.`, {
          cause: error,
        });
      }
    },

    recordUse: ({ id, userId, name }, { signCount, at, purpose }) =>
      database.transaction(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable('passkeys')
          .set({ sign_count: signCount, last_used_at: at.getTime() })
          .where('id', '=', id)
          .where('user_id', '=', userId)
          .where((where) =>
            signCount === 0 ? where('sign_count', '=', 0) : where('sign_count', '<', signCount),
          )
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await record(transaction, 'passkey.use', userId, { name, purpose });
        return true;
      }),

    rename: (userId, id, name) =>
      database.transaction(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable('passkeys')
          .set({ name })
          .where('id', '=', id)
          .where('user_id', '=', userId)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await record(transaction, 'passkey.rename', userId, { name });
        return true;
      }),

    remove: (userId, id, removal) =>
      removeFactor(database, userId, removal, async (transaction) => {
        const row = await transaction
          .deleteFrom('passkeys')
          .where('id', '=', id)
          .where('user_id', '=', userId)
          .returning('name')
          .executeTakeFirst();
        if (row === undefined) return false;
        await record(transaction, 'passkey.remove', userId, { name: row.name });
        return true;
      }),

    async removeAllOfUser(userId) {
      let count = 0;
      await removeFactor(database, userId, { mayBeLast: true }, async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('passkeys')
          .where('user_id', '=', userId)
          .executeTakeFirst();
        count = Number(numDeletedRows);
        if (count > 0) await record(transaction, 'passkey.remove', userId, { count });
        return count > 0;
      });
      return count;
    },
  };
}

function passkeyOf(row: Row<'passkeys'>): Passkey {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    publicKey: row.public_key,
    signCount: row.sign_count,
    transports: JSON.parse(row.transports) as string[],
    verifiesUser: row.verifies_user !== 0,
    createdAt: new Date(row.created_at),
    lastUsedAt: row.last_used_at === null ? undefined : new Date(row.last_used_at),
  };
}
