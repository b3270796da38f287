import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf } from '../../platform/store/queries.ts';
import { isForeignKeyViolation } from '../../platform/store/storage-error.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { text } from '../../platform/texts/text.ts';
import type { Server } from '../servers/server.ts';

/** With more, the list of who may use a server is of no use to anyone; share it with a group. */
const maxSharesOfServer = 1_000;

/** Whom a share is for, by id. */
export type RecipientId =
  | { readonly kind: 'user'; readonly id: string }
  | { readonly kind: 'group'; readonly id: string };

/** Column of the one that a share is for. */
export function recipientColumn({ kind }: { readonly kind: 'user' | 'group' }) {
  return kind === 'user' ? 'shares.user_id' : 'shares.group_id';
}

/**
 * Adds scopes to what a recipient may do with a server; false when they held all of it. To be called in a transaction.
 * Throws `conflict` when too many share the server, and `not_found` when it or the recipient is gone.
 */
export async function grantShare(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  { id: serverId, userId: ownerId }: Pick<Server, 'id' | 'userId'>,
  recipient: RecipientId,
  scopeNames: readonly string[],
): Promise<boolean> {
  await lockUser(transaction, database, ownerId);
  const existing = await transaction
    .selectFrom('shares')
    .select(['id', 'scopes'])
    .where('server_id', '=', serverId)
    .where(recipientColumn(recipient), '=', recipient.id)
    .executeTakeFirst();
  if (existing !== undefined) {
    const held = namesIn(existing.scopes);
    const all = [...new Set([...held, ...scopeNames])].sort();
    if (all.length === held.length) return false;
    await transaction
      .updateTable('shares')
      .set({ scopes: JSON.stringify(all) })
      .where('id', '=', existing.id)
      .execute();
    return true;
  }
  const shares = transaction.selectFrom('shares').where('server_id', '=', serverId);
  if ((await countOf(shares)) >= maxSharesOfServer) {
    throw new HubError('conflict', text`A server is shared with ${maxSharesOfServer} at most.`, {
      hint: text`End one of the shares first, or share it with a group.`,
    });
  }
  try {
    await transaction
      .insertInto('shares')
      .values({
        id: randomUUID(),
        server_id: serverId,
        user_id: recipient.kind === 'user' ? recipient.id : null,
        group_id: recipient.kind === 'group' ? recipient.id : null,
        scopes: JSON.stringify([...new Set(scopeNames)].sort()),
        created_at: Date.now(),
      })
      .execute();
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw error;
    throw new HubError('not_found', text`The server, or whom it is shared with, is gone.`, {
      cause: error,
    });
  }
  return true;
}

/** Names of scopes as the tables keep them. */
export function namesIn(json: string): string[] {
  return JSON.parse(json) as string[];
}
