import type { Kysely } from 'kysely';
import type { HubDatabase } from './database.ts';
import type { Tables } from './tables.ts';
import { deleteGrants, deleteTokensOf } from './token-makers.ts';

/**
 * Deletes a browser's login with everything that it gave: its codes not yet exchanged, its grants and its tokens. Tells
 * whose it was, or undefined when it was not there.
 */
export async function deleteSession(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  sessionId: string,
): Promise<string | undefined> {
  // First: an exchange under way holds this row, so this waits for it, and what it gave is there when the tokens go.
  // A later one waits for this in turn, and finds no login.
  const deleted = await transaction
    .deleteFrom('login_sessions')
    .where('session_id', '=', sessionId)
    .returning('user_id')
    .executeTakeFirst();
  await transaction.deleteFrom('authorization_codes').where('session_id', '=', sessionId).execute();
  await deleteGrants(transaction, database, { session_id: sessionId });
  await endClientLogins(transaction, { session_id: sessionId });
  // Those made with them belong to the session too; one that is being made is seen only now.
  await deleteTokensOf(transaction, database, 'session_id', sessionId);
  return deleted?.user_id;
}

/** Makes the clients of logins that end be told of it (OpenID Connect Back-Channel Logout 1.0). */
export async function endClientLogins(
  transaction: Kysely<Tables>,
  which: Partial<Record<'session_id' | 'user_id', string>>,
): Promise<void> {
  await transaction
    .updateTable('client_logins')
    .set({ due_at: 0 })
    .where((is) => is.and(which))
    .where('due_at', 'is', null)
    .execute();
}
