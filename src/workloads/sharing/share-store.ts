import { type ExpressionBuilder, type Kysely, sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { type ListPage, type OffsetPageAsked, readPage } from '../../platform/store/page-edge.ts';
import { countOf } from '../../platform/store/queries.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import type { Server } from '../servers/server.ts';
import { selectServers, toServer } from '../servers/server-row-store.ts';
import { type ListedShare, type Share, type ShareRecipient, scopesOfShare } from './share.ts';
import { recordSharing } from './share-audit-store.ts';
import { grantShare, namesIn, type RecipientId, recipientColumn } from './share-rows-store.ts';

/** Which shares a list holds. */
export type ShareFilter =
  | { readonly kind: 'server'; readonly serverId: string }
  | { readonly kind: 'owner'; readonly userId: string }
  /** Those of the groups of the user among them; perhaps without those of the user's own servers. */
  | { readonly kind: 'receiving_user'; readonly userId: string; readonly onlyOfOthers: boolean }
  | { readonly kind: 'receiving_group'; readonly groupId: string };

/** Who may use whose server, beside those whose roles allow it. */
export interface ShareStore {
  /** Scopes that shares give to a user, also by their groups, each restricted to one server. One query. */
  scopesGivenTo(userName: string): Promise<readonly string[]>;
  /** One page in the order in which they were made, and how many there are on all pages. Two queries. */
  list(filter: ShareFilter, page: OffsetPageAsked): Promise<ListPage<ListedShare>>;
  find(serverId: string, recipient: RecipientId): Promise<Share | undefined>;
  /** Adds scopes to what a recipient may do with a server. Throws `conflict` for too many, `not_found`. */
  grant(
    server: Pick<Server, 'id' | 'userId'>,
    recipient: RecipientId,
    scopeNames: readonly string[],
  ): Promise<void>;
  /** Takes scopes away, all of them where none are named; what has none left is gone. False where there was no share. */
  revoke(
    server: Pick<Server, 'id' | 'userId'>,
    recipient: RecipientId,
    scopeNames?: readonly string[],
  ): Promise<boolean>;
  /** Ends every share of a server. */
  revokeAll(serverId: string): Promise<void>;
}

export function createShareStore(database: HubDatabase): ShareStore {
  const { kysely } = database;

  const select = () =>
    selectServers(database)
      .innerJoin('shares', 'shares.server_id', 'servers.id')
      .leftJoin('users as recipients', 'recipients.id', 'shares.user_id')
      .leftJoin('groups', 'groups.id', 'shares.group_id')
      .select([
        'shares.id as share_id',
        'shares.scopes as share_scopes',
        'shares.created_at as shared_at',
        'recipients.name as recipient_name',
        'groups.name as group_name',
      ]);
  type ShareRow = Awaited<ReturnType<ReturnType<typeof select>['execute']>>[number];

  const toShare = (row: ShareRow): Share => ({
    server: toServer(row),
    recipient: recipientOf(row),
    scopeNames: namesIn(row.share_scopes),
    createdAt: new Date(row.shared_at),
  });

  const counted = () => kysely.selectFrom('shares').innerJoin('servers', 'servers.id', 'server_id');

  return {
    async scopesGivenTo(userName) {
      const rows = await kysely
        .selectFrom('shares')
        .innerJoin('servers', 'servers.id', 'shares.server_id')
        .innerJoin('users as owners', 'owners.id', 'servers.user_id')
        .select(['shares.scopes', 'owners.name as userName', 'servers.name'])
        .where((where) => {
          const user = where.selectFrom('users').select('users.id').where('name', '=', userName);
          return where.or([
            where('shares.user_id', '=', user),
            where(
              'shares.group_id',
              'in',
              where.selectFrom('group_members').select('group_id').where('user_id', '=', user),
            ),
          ]);
        })
        .execute();
      return rows.flatMap(({ scopes, ...server }) =>
        scopesOfShare({ server, scopeNames: namesIn(scopes) }),
      );
    },

    async list(filter, asked) {
      const total = await countOf(counted().where((where) => matches(where, filter)));
      const rows = (direction: 'asc' | 'desc') =>
        select()
          .where((where) => matches(where, filter))
          .orderBy('shares.created_at', direction)
          .orderBy('shares.id', direction);
      const page = await readPage(asked, total, {
        placeOf: (key) => /^(\d{1,15}),(.+)$/su.exec(key) ?? undefined,
        read({ isBackwards, place, offset, limit }) {
          const ordered = rows(isBackwards ? 'desc' : 'asc')
            .limit(limit)
            .offset(offset);
          const pastEdge = sql.raw(isBackwards ? '<' : '>');
          return place === undefined
            ? ordered.execute()
            : ordered
                .where(
                  sql<boolean>`(shares.created_at, shares.id) ${pastEdge} (${Number(place[1])}, ${place[2]})`,
                )
                .execute();
        },
      });
      const keyed = (row: ShareRow): ListedShare => ({
        ...toShare(row),
        key: `${row.shared_at},${row.share_id}`,
      });
      return { ...page, items: page.items.map(keyed) };
    },

    async find(serverId, recipient) {
      const row = await select()
        .where('shares.server_id', '=', serverId)
        .where(recipientColumn(recipient), '=', recipient.id)
        .executeTakeFirst();
      return row && toShare(row);
    },

    async grant(server, recipient, scopeNames) {
      const isChanged = await database.transaction(async (transaction) => {
        if (!(await grantShare(transaction, database, server, recipient, scopeNames))) return false;
        const auditEvent = { serverId: server.id, recipient, scopeNames };
        await recordSharing(transaction, database, 'share.grant', auditEvent);
        return true;
      });
      if (isChanged) database.announceChange({ kind: 'rights_changed' });
    },

    async revoke({ id: serverId, userId: ownerId }, recipient, scopeNames) {
      const isThere = await database.transaction(async (transaction) => {
        await lockUser(transaction, database, ownerId);
        const ofRecipient = await transaction
          .selectFrom('shares')
          .select(['id', 'scopes'])
          .where('server_id', '=', serverId)
          .where(recipientColumn(recipient), '=', recipient.id)
          .executeTakeFirst();
        if (ofRecipient === undefined) return false;
        const left = namesIn(ofRecipient.scopes).filter(
          (name) => scopeNames !== undefined && !scopeNames.includes(name),
        );
        await setScopes(transaction, ofRecipient.id, left);
        const auditEvent = { serverId, recipient, scopeNames };
        await recordSharing(transaction, database, 'share.revoke', auditEvent);
        return true;
      });
      if (isThere) database.announceChange({ kind: 'rights_changed' });
      return isThere;
    },

    async revokeAll(serverId) {
      const isChanged = await database.transaction(async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('shares')
          .where('server_id', '=', serverId)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await recordSharing(transaction, database, 'share.revoke', { serverId });
        return true;
      });
      if (isChanged) database.announceChange({ kind: 'rights_changed' });
    },
  };
}

async function setScopes(
  transaction: Kysely<Tables>,
  id: string,
  scopeNames: readonly string[],
): Promise<void> {
  if (scopeNames.length === 0) {
    await transaction.deleteFrom('shares').where('id', '=', id).execute();
    return;
  }
  await transaction
    .updateTable('shares')
    .set({ scopes: JSON.stringify(scopeNames) })
    .where('id', '=', id)
    .execute();
}

function recipientOf(row: {
  readonly recipient_name: string | null;
  readonly group_name: string | null;
}): ShareRecipient {
  return row.group_name === null
    ? { kind: 'user', name: row.recipient_name ?? '' }
    : { kind: 'group', name: row.group_name };
}

function matches(where: ExpressionBuilder<Tables, 'shares' | 'servers'>, filter: ShareFilter) {
  switch (filter.kind) {
    case 'server':
      return where('shares.server_id', '=', filter.serverId);
    case 'owner':
      return where('servers.user_id', '=', filter.userId);
    case 'receiving_group':
      return where('shares.group_id', '=', filter.groupId);
    case 'receiving_user': {
      const isReceived = where.or([
        where('shares.user_id', '=', filter.userId),
        where(
          'shares.group_id',
          'in',
          where
            .selectFrom('group_members')
            .select('group_id')
            .where('group_members.user_id', '=', filter.userId),
        ),
      ]);
      if (!filter.onlyOfOthers) return isReceived;
      return where.and([isReceived, where('servers.user_id', '!=', filter.userId)]);
    }
  }
}
