import type { Kysely } from 'kysely';
import type { HubDatabase } from './database.ts';
import { textsOf } from './queries.ts';
import type { Tables } from './tables.ts';

/**
 * Holds a token that another one is made with until the transaction ends: who deletes it meanwhile waits,
 * and finds the new one. False when it is gone.
 */
export async function holdToken(
  transaction: Kysely<Tables>,
  { dialect }: Pick<HubDatabase, 'dialect'>,
  id: string,
): Promise<boolean> {
  const select = transaction.selectFrom('access_tokens').select('id').where('id', '=', id);
  // Transactions of SQLite come one after another anyway.
  const row = await (dialect === 'sqlite' ? select : select.forKeyShare()).executeTakeFirst();
  return row !== undefined;
}

/**
 * Deletes the tokens that were made with deleted ones, and with those in turn. Returns the ids of all of
 * them. Generation by generation: a token that is being made holds its maker, so it is there to be seen
 * once that one is deleted.
 */
export async function deleteMadeWith(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  deletedIds: readonly string[],
): Promise<string[]> {
  const all = [...deletedIds];
  let makers = deletedIds;
  while (makers.length > 0) {
    const deleted = await transaction
      .deleteFrom('access_tokens')
      .where('made_by', 'in', textsOf(makers, database))
      .returning('id')
      .execute();
    makers = deleted.map(({ id }) => id);
    all.push(...makers);
  }
  return all;
}

/**
 * Ends everything that users allowed an OAuth client: its codes and tokens, and what was made with those. Client ids
 * hold names, and the next client of a name is another one. Tells whether there was anything.
 */
export async function forgetClient(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  clientId: string,
): Promise<boolean> {
  const { numDeletedRows } = await transaction
    .deleteFrom('authorization_codes')
    .where('client_id', '=', clientId)
    .executeTakeFirst();
  await transaction.deleteFrom('client_logins').where('client_id', '=', clientId).execute();
  const { grantIds } = await deleteGrants(transaction, database, { client_id: clientId });
  const tokens = await deleteTokensOf(transaction, database, 'client_id', clientId);
  return numDeletedRows > 0n || grantIds.length > 0 || tokens.length > 0;
}

/**
 * Deletes grants with their refresh tokens, their access tokens and all that were made with these. Tells the ids of the
 * grants and of the access tokens.
 */
export async function deleteGrants(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  which: Partial<Record<'id' | 'client_id' | 'user_id' | 'session_id', string>>,
): Promise<{ readonly grantIds: string[]; readonly tokenIds: string[] }> {
  // First: a refresh under way holds the row, so the token that it gives is there when the tokens go.
  const grants = await transaction
    .deleteFrom('grants')
    .where((is) => is.and(which))
    .returning('id')
    .execute();
  const grantIds = grants.map(({ id }) => id);
  const tokenIds: string[] = [];
  for (const id of grantIds)
    tokenIds.push(...(await deleteTokensOf(transaction, database, 'grant_id', id)));
  return { grantIds, tokenIds };
}

/** Deletes the tokens of a session, client, service or grant, and all that were made with them. Returns their ids. */
export async function deleteTokensOf(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  column: 'session_id' | 'client_id' | 'service_name' | 'grant_id' | 'token_hash',
  value: string,
): Promise<string[]> {
  const tokens = await transaction
    .deleteFrom('access_tokens')
    .where(column, '=', value)
    .returning('id')
    .execute();
  return deleteMadeWith(
    transaction,
    database,
    tokens.map(({ id }) => id),
  );
}
