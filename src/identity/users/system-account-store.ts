import type { Kysely } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { isUniqueViolation } from '../../platform/store/storage-error.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import { validateUserName } from './user-name.ts';

/**
 * Who has which system account: the name that stands for `{username}` in `Spawner.system_user` and
 * `Spawner.home_dir`. It is the user's name when first needed, and then stays: no two users ever have
 * the same one, and that of a deleted user is kept from later users of the same name.
 */
export interface SystemAccountStore {
  /** The user's account, decided now if it was not. Throws `conflict` when it is another user's or was. */
  claim(user: { readonly id: string; readonly name: string }): Promise<string>;
  /** The user's account; undefined where none was needed yet. */
  find(userId: string): Promise<string | undefined>;
  /**
   * Gives a user an account, also that of a deleted user; the former one is kept from others. Throws
   * `conflict` when it is another user's, and `bad_request` when it cannot be a name.
   */
  give(user: { readonly id: string }, account: string): Promise<void>;
}

type Owner = { readonly id: string; readonly name: string };

export function createSystemAccountStore(
  database: Pick<HubDatabase, 'transaction' | 'kysely' | 'audit'>,
): SystemAccountStore {
  return {
    claim: (user) => database.transaction((transaction) => claimSystemAccount(transaction, user)),

    async find(userId) {
      const found = await database.kysely
        .selectFrom('users')
        .select('system_account')
        .where('id', '=', userId)
        .executeTakeFirst();
      return found?.system_account ?? undefined;
    },

    async give({ id }, given) {
      const account = validateUserName(given);
      await database.transaction(async (transaction) => {
        const holder = await transaction
          .selectFrom('users')
          .select(['id', 'name'])
          .where('system_account', '=', account)
          .executeTakeFirst();
        if (holder?.id === id) return;
        if (holder !== undefined) {
          throw new HubError('conflict', text`The account ${account} belongs to ${holder.name}.`, {
            hint: text`Give ${holder.name} another one first.`,
          });
        }
        await retireSystemAccount(transaction, id);
        await transaction
          .deleteFrom('retired_system_accounts')
          .where('name', '=', account)
          .execute();
        const changed = await transaction
          .updateTable('users')
          .set({ system_account: account })
          .where('id', '=', id)
          .returning('name')
          .executeTakeFirst();
        await database.audit.record(transaction, {
          action: 'user.change',
          target: { kind: 'user', name: changed?.name ?? '' },
          detail: { system_account: account },
        });
      });
    },
  };
}

/** Decides the account of a user, within a transaction. Throws as `claim`. */
export async function claimSystemAccount(
  transaction: Kysely<Tables>,
  { id, name }: Owner,
): Promise<string> {
  const known = await transaction
    .selectFrom('users')
    .select('system_account')
    .where('id', '=', id)
    .executeTakeFirst();
  if (known?.system_account !== null && known?.system_account !== undefined) {
    return known.system_account;
  }
  try {
    await transaction
      .updateTable('users')
      .set({ system_account: name })
      .where('id', '=', id)
      .execute();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw taken(
      name,
      text`The account ${name} on the machine of the servers, with its files, belongs to another user.`,
      error,
    );
  }
  // Only now: who had it may have been deleted while the update waited for that.
  const retired = await transaction
    .selectFrom('retired_system_accounts')
    .select('name')
    .where('name', '=', name)
    .executeTakeFirst();
  if (retired !== undefined)
    throw taken(
      name,
      text`The account ${name} on the machine of the servers, with its files, belonged to a deleted user.`,
    );
  return name;
}

/** Keeps the account of a user from all others, within a transaction. */
export async function retireSystemAccount(transaction: Kysely<Tables>, id: string): Promise<void> {
  await transaction
    .insertInto('retired_system_accounts')
    .columns(['name', 'retired_at'])
    .expression((expression) =>
      expression
        .selectFrom('users')
        .select((select) => ['system_account as name', select.val(Date.now()).as('retired_at')])
        .where('id', '=', id)
        .where('system_account', 'is not', null),
    )
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}

function taken(name: string, reported: Text, cause?: unknown): HubError {
  return new HubError('conflict', reported, {
    cause,
    hint: text`The operator decides: "${hubCommand(`user account ${name} ${name}`)}" gives the user that account where no other user has it, "${hubCommand(`user account ${name} OTHER`)}" another one.`,
  });
}
