import type { Kysely } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import { apiTokensOf } from '../../platform/store/api-tokens.ts';
import { tokensRevoked } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { deleteMadeWith } from '../../platform/store/token-makers.ts';
import { text } from '../../platform/texts/text.ts';
import { endLinksOf } from './invitation-store.ts';
import { normaliseUserName } from './user-name.ts';

/** What is stored of a password. */
export interface PasswordCredential {
  readonly passwordHash: string;
  /** The next login must choose a new password. */
  readonly mustChange: boolean;
}

export interface PasswordChangeOptions {
  /** The next login must choose another one. */
  readonly mustChange?: boolean;
  /** Ends the tokens that the user made by hand or by the API, with the old password. */
  readonly endsApiTokens?: boolean;
}

/** The same password, hashed at another cost. */
export interface PasswordRehash {
  /** The hash that is stored; when another one is there meanwhile, that stays. */
  readonly replacing: string;
}

/** The hashes of the passwords of the hub's own accounts. */
export interface PasswordCredentialStore {
  findPasswordHash(userName: string): Promise<PasswordCredential | undefined>;
  /**
   * Clears `mustChange` unless asked otherwise. Links with which the user could choose a password end: a forgotten one
   * must not replace it. Throws `not_found` for the user.
   */
  setPasswordHash(
    userName: string,
    passwordHash: string,
    options?: PasswordChangeOptions,
  ): Promise<void>;
  /** Stores another hash of the password that a user has; nothing happens when it was changed meanwhile. */
  rehashPassword(userName: string, passwordHash: string, rehash: PasswordRehash): Promise<void>;
}

export function createPasswordCredentialStore(database: HubDatabase): PasswordCredentialStore {
  const { kysely } = database;
  return {
    async findPasswordHash(userName) {
      const row = await kysely
        .selectFrom('password_credentials')
        .innerJoin('users', 'users.id', 'password_credentials.user_id')
        .select(['password_hash', 'must_change'])
        .where('users.name', '=', normaliseUserName(userName))
        .executeTakeFirst();
      return row && { passwordHash: row.password_hash, mustChange: row.must_change === 1 };
    },

    async setPasswordHash(
      userName,
      passwordHash,
      { mustChange = false, endsApiTokens = false } = {},
    ) {
      const values = {
        password_hash: passwordHash,
        must_change: Number(mustChange),
        updated_at: Date.now(),
      };
      const userId = await findUserId(kysely, userName);
      if (userId === undefined) throw new HubError('not_found', text`There is no such user.`);
      const ended = await database.transaction(async (transaction) => {
        await transaction
          .insertInto('password_credentials')
          .values({ user_id: userId, ...values })
          .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
          .execute();
        const revoked = endsApiTokens
          ? await deleteMadeWith(
              transaction,
              database,
              await deleteApiTokens(transaction, userId, database.now()),
            )
          : [];
        const endedLinks = await endLinksOf(transaction, userId);
        await database.audit.record(transaction, {
          action: 'password.change',
          target: { kind: 'user', name: normaliseUserName(userName) },
          detail: {
            ...(endsApiTokens && { revoked_tokens: revoked.length }),
            ...(endedLinks > 0 && { revoked_links: endedLinks }),
          },
        });
        return revoked;
      });
      if (ended.length > 0) database.announceChange(tokensRevoked(ended));
    },

    async rehashPassword(userName, passwordHash, { replacing }) {
      await kysely
        .updateTable('password_credentials')
        .set({ password_hash: passwordHash })
        .where('user_id', 'in', (select) =>
          select.selectFrom('users').select('id').where('name', '=', normaliseUserName(userName)),
        )
        .where('password_hash', '=', replacing)
        .execute();
    },
  };
}

async function deleteApiTokens(
  transaction: Kysely<Tables>,
  userId: string,
  now: number,
): Promise<string[]> {
  const deleted = await transaction
    .deleteFrom('access_tokens')
    .where('id', 'in', apiTokensOf(transaction, userId, now).select('id'))
    .returning('id')
    .execute();
  return deleted.map(({ id }) => id);
}

async function findUserId(kysely: Kysely<Tables>, userName: string): Promise<string | undefined> {
  const row = await kysely
    .selectFrom('users')
    .select('id')
    .where('name', '=', normaliseUserName(userName))
    .executeTakeFirst();
  return row?.id;
}
