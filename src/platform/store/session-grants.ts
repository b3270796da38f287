import type { Kysely } from 'kysely';
import type { HubDatabase } from './database.ts';
import type { Tables } from './tables.ts';
import { deleteGrants, deleteTokensOf } from './token-makers.ts';

/** Deletes everything that a browser's login gave: its codes not yet exchanged, its grants and its tokens. */
export async function deleteSessionGrants(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  sessionId: string,
): Promise<void> {
  // Codes first: an exchange under way holds the row of its code, so this waits for it, and the token it
  // gave is there when the tokens go. Codes made later are refused because the session is gone.
  await transaction.deleteFrom('authorization_codes').where('session_id', '=', sessionId).execute();
  await deleteGrants(transaction, database, { session_id: sessionId });
  await endClientLogins(transaction, { session_id: sessionId });
  // Those made with them belong to the session too; one that is being made is seen only now.
  await deleteTokensOf(transaction, database, 'session_id', sessionId);
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
