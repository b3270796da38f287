import type { Kysely } from 'kysely';
import { HubError } from '../errors.ts';
import type { HubDatabase } from '../store/database.ts';
import type { Tables } from '../store/tables.ts';
import { normaliseUserName } from './user-name.ts';

/** What is stored of a password. */
export interface PasswordCredential {
  readonly passwordHash: string;
  /** The next login must choose a new password. */
  readonly mustChange: boolean;
}

/** The hashes of the passwords of the hub's own accounts. */
export interface PasswordCredentialStore {
  findPasswordHash(userName: string): Promise<PasswordCredential | undefined>;
  /** Clears `mustChange` unless asked otherwise. Throws `not_found` for the user. */
  setPasswordHash(
    userName: string,
    passwordHash: string,
    options?: { readonly mustChange?: boolean },
  ): Promise<void>;
}

export function createPasswordCredentialStore({ kysely }: HubDatabase): PasswordCredentialStore {
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

    async setPasswordHash(userName, passwordHash, { mustChange = false } = {}) {
      const values = {
        password_hash: passwordHash,
        must_change: Number(mustChange),
        updated_at: Date.now(),
      };
      const userId = await findUserId(kysely, userName);
      if (userId === undefined) throw new HubError('not_found', 'There is no such user.');
      await kysely
        .insertInto('password_credentials')
        .values({ user_id: userId, ...values })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
        .execute();
    },
  };
}

async function findUserId(kysely: Kysely<Tables>, userName: string): Promise<string | undefined> {
  const row = await kysely
    .selectFrom('users')
    .select('id')
    .where('name', '=', normaliseUserName(userName))
    .executeTakeFirst();
  return row?.id;
}
