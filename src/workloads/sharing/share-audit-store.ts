import type { Kysely } from 'kysely';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { userNameOf } from '../../platform/store/user-name-of.ts';
import type { RecipientId } from './share-rows-store.ts';

/** Records what is done to the sharing of a server, within its transaction; found under the name of its user. */
export async function recordSharing(
  transaction: Kysely<Tables>,
  { audit }: Pick<HubDatabase, 'audit'>,
  action: AuditEvent['action'],
  {
    serverId,
    recipient,
    scopeNames,
  }: {
    readonly serverId: string;
    readonly recipient?: RecipientId | undefined;
    readonly scopeNames?: readonly string[] | undefined;
  },
): Promise<void> {
  const server = await transaction
    .selectFrom('servers')
    .innerJoin('users', 'users.id', 'servers.user_id')
    .select(['servers.name', 'users.name as owner'])
    .where('servers.id', '=', serverId)
    .executeTakeFirst();
  if (server === undefined) return;
  const name = recipient && (await recipientName(transaction, recipient));
  await audit.record(transaction, {
    action,
    target: { kind: 'server', name: server.owner, part: server.name },
    detail: {
      ...(recipient !== undefined && { [recipient.kind]: name }),
      ...(scopeNames !== undefined && { scopes: scopeNames }),
    },
  });
}

async function recipientName(
  transaction: Kysely<Tables>,
  { kind, id }: RecipientId,
): Promise<string | undefined> {
  if (kind === 'user') return userNameOf(transaction, id);
  const group = await transaction
    .selectFrom('groups')
    .select('name')
    .where('id', '=', id)
    .executeTakeFirst();
  return group?.name;
}
