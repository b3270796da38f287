import { randomUUID } from 'node:crypto';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf } from '../../platform/store/queries.ts';
import { isForeignKeyViolation } from '../../platform/store/storage-error.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { text } from '../../platform/texts/text.ts';
import type { Server } from '../servers/server.ts';
import { selectServers, toServer } from '../servers/server-row-store.ts';
import type { ShareCode } from './share.ts';
import { recordSharing } from './share-audit-store.ts';
import { grantShare, namesIn } from './share-rows-store.ts';

const maxCodesOfServer = 100;

/** Which codes a list holds. */
export type ShareCodeFilter =
  | { readonly kind: 'server'; readonly serverId: string }
  | { readonly kind: 'owner'; readonly userId: string };

/** Codes that give a share to each user who accepts one before it expires. */
export interface ShareCodeStore {
  /**
   * Makes a code, which is stored as a hash only and shown this once. Throws `conflict` where a server has as many as
   * it may, and `not_found` for a server that is gone.
   */
  create(
    server: Server,
    options: { readonly scopeNames: readonly string[]; readonly expiresAt: Date },
  ): Promise<{ shareCode: ShareCode; code: string }>;
  /** Those that have not expired, in the order in which they were made. Two queries. */
  list(
    filter: ShareCodeFilter,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<{ items: ShareCode[]; total: number }>;
  /** Undefined for a code that does not work (any more). */
  find(code: string): Promise<ShareCode | undefined>;
  /**
   * Gives a user the share that a code is for; undefined for one that does not work (any more). Throws `conflict`
   * where too many share the server.
   */
  exchange(code: string, userId: string): Promise<ShareCode | undefined>;
  /** Ends a code of a server; false when there is none. */
  delete(
    serverId: string,
    which: { readonly id: string } | { readonly code: string },
  ): Promise<boolean>;
  deleteAll(serverId: string): Promise<void>;
  /** Deletes what can no longer be used; tells how many. */
  purgeExpired(): Promise<number>;
}

export function createShareCodeStore(database: HubDatabase): ShareCodeStore {
  const { kysely } = database;

  const select = (on = kysely) =>
    selectServers(database, on)
      .innerJoin('share_codes', 'share_codes.server_id', 'servers.id')
      .select([
        'share_codes.id as share_code_id',
        'share_codes.scopes as share_scopes',
        'share_codes.created_at as code_created_at',
        'share_codes.expires_at as code_expires_at',
        'share_codes.exchange_count',
        'share_codes.last_exchanged_at',
      ])
      .where('share_codes.expires_at', '>', database.now());
  type CodeRow = Awaited<ReturnType<ReturnType<typeof select>['execute']>>[number];

  const toShareCode = (row: CodeRow): ShareCode => ({
    id: row.share_code_id,
    server: toServer(row),
    scopeNames: namesIn(row.share_scopes),
    createdAt: new Date(row.code_created_at),
    expiresAt: new Date(row.code_expires_at),
    exchangeCount: row.exchange_count,
    lastExchangedAt: row.last_exchanged_at === null ? undefined : new Date(row.last_exchanged_at),
  });

  const find = async (code: string, on = kysely): Promise<ShareCode | undefined> => {
    const row = await select(on)
      .where('share_codes.code_hash', '=', hashSecret(code))
      .executeTakeFirst();
    return row && toShareCode(row);
  };

  return {
    async create(server, { scopeNames, expiresAt }) {
      const code = randomSecret();
      const row = {
        id: `sc_${randomUUID()}`,
        code_hash: hashSecret(code),
        server_id: server.id,
        scopes: JSON.stringify([...new Set(scopeNames)].sort()),
        created_at: database.now(),
        expires_at: expiresAt.getTime(),
        exchange_count: 0,
        last_exchanged_at: null,
      };
      await database.transaction(async (transaction) => {
        await lockUser(transaction, database, server.userId);
        const codes = transaction
          .selectFrom('share_codes')
          .where('server_id', '=', server.id)
          .where('expires_at', '>', database.now());
        if ((await countOf(codes)) >= maxCodesOfServer) {
          throw new HubError('conflict', text`A server has ${maxCodesOfServer} links at most.`, {
            hint: text`Delete one that is no longer needed.`,
          });
        }
        try {
          await transaction.insertInto('share_codes').values(row).execute();
        } catch (error) {
          if (!isForeignKeyViolation(error)) throw error;
          throw new HubError('not_found', text`The server is gone.`, { cause: error });
        }
        const auditEvent = { serverId: server.id, scopeNames };
        await recordSharing(transaction, database, 'share_code.create', auditEvent);
      });
      return {
        code,
        shareCode: {
          id: row.id,
          server,
          scopeNames: namesIn(row.scopes),
          createdAt: new Date(row.created_at),
          expiresAt,
          exchangeCount: 0,
          lastExchangedAt: undefined,
        },
      };
    },

    async list(filter, { offset, limit }) {
      const column = filter.kind === 'server' ? 'servers.id' : 'servers.user_id';
      const value = filter.kind === 'server' ? filter.serverId : filter.userId;
      const all = kysely
        .selectFrom('share_codes')
        .innerJoin('servers', 'servers.id', 'share_codes.server_id')
        .where('share_codes.expires_at', '>', database.now())
        .where(column, '=', value);
      const rows = await select()
        .where(column, '=', value)
        .orderBy('share_codes.created_at')
        .orderBy('share_codes.id')
        .limit(limit)
        .offset(offset)
        .execute();
      return { items: rows.map(toShareCode), total: await countOf(all) };
    },

    find: (code) => find(code),

    async exchange(code, userId) {
      const exchanged = await database.transaction(async (transaction) => {
        const shareCode = await find(code, transaction);
        if (shareCode === undefined) return undefined;
        const { server, scopeNames } = shareCode;
        await grantShare(transaction, database, server, { kind: 'user', id: userId }, scopeNames);
        const { numUpdatedRows } = await transaction
          .updateTable('share_codes')
          .set((row) => ({
            exchange_count: row('exchange_count', '+', 1),
            last_exchanged_at: database.now(),
          }))
          .where('id', '=', shareCode.id)
          .executeTakeFirst();
        // Deleted since it was read; what was granted with it is undone.
        if (numUpdatedRows === 0n) throw new HubError('not_found', text`This link is gone.`);
        const recipient = { kind: 'user', id: userId } as const;
        const auditEvent = { serverId: server.id, recipient, scopeNames };
        await recordSharing(transaction, database, 'share_code.accept', auditEvent);
        return shareCode;
      });
      if (exchanged !== undefined) database.announceChange({ kind: 'rights_changed' });
      return exchanged;
    },

    async delete(serverId, which) {
      return database.transaction(async (transaction) => {
        const query = transaction.deleteFrom('share_codes').where('server_id', '=', serverId);
        const { numDeletedRows } = await ('id' in which
          ? query.where('id', '=', which.id)
          : query.where('code_hash', '=', hashSecret(which.code))
        ).executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await recordSharing(transaction, database, 'share_code.delete', { serverId });
        return true;
      });
    },

    async deleteAll(serverId) {
      await database.transaction(async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('share_codes')
          .where('server_id', '=', serverId)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return;
        await recordSharing(transaction, database, 'share_code.delete', { serverId });
      });
    },

    async purgeExpired() {
      const { numDeletedRows } = await kysely
        .deleteFrom('share_codes')
        .where('expires_at', '<=', database.now())
        .executeTakeFirst();
      return Number(numDeletedRows);
    },
  };
}
