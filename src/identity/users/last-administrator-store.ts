import { type Kysely, sql } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';

/**
 * Whether no administrator may be left among the users: where a service that is one does it and stays, or the
 * configuration or a provider says so.
 */
export interface LastAdministrator {
  readonly mayBeLast?: boolean;
}

/** Throws `conflict` where a change would leave none: nobody could manage the hub any more. */
export async function requireAdministrator(
  transaction: Kysely<Tables>,
  dialect: HubDatabase['dialect'],
): Promise<void> {
  const left = transaction
    .selectFrom('users')
    .select('id')
    // Written out, as it is in the index that has them alone.
    .where(sql<boolean>`admin = 1`)
    .where('suspended_at', 'is', null)
    .limit(1);
  // Two who take each other's rights away wait for one another; one of them is tried again.
  const found = await (dialect === 'postgres' ? left.forUpdate() : left).executeTakeFirst();
  if (found !== undefined) return;
  throw new HubError('conflict', text`The last administrator stays.`, {
    hint: text`Make someone else an administrator first.`,
  });
}
