import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { text } from '../../platform/texts/text.ts';
import type { GivenVolume } from '../../plugin/host/spawn-request.ts';

/** Names that engines give to volumes (RFC 1123 §2.1): no path, and no part of an address. */
export const volumeSource: RegExp = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

export interface UserVolumeStore {
  list(userId: string): Promise<GivenVolume[]>;
  /** Without a source the volume of the configuration is used again. Throws `conflict` for one of another user. */
  set(
    user: { readonly id: string; readonly name: string },
    volume: Omit<GivenVolume, 'source'> & { readonly source: string | undefined },
  ): Promise<void>;
}

export function createUserVolumeStore(
  database: Pick<HubDatabase, 'transaction' | 'kysely' | 'audit'>,
): UserVolumeStore {
  return {
    async list(userId) {
      const rows = await database.kysely
        .selectFrom('user_volumes')
        .selectAll()
        .where('user_id', '=', userId)
        .orderBy('volume')
        .orderBy('server_name')
        .execute();
      return rows.map(({ server_name: serverName, volume, source }) => ({
        serverName,
        volume,
        source,
      }));
    },

    async set({ id, name }, { serverName, volume, source }) {
      await database.transaction(async (transaction) => {
        await transaction
          .deleteFrom('user_volumes')
          .where('user_id', '=', id)
          .where('server_name', '=', serverName)
          .where('volume', '=', volume)
          .execute();
        if (source !== undefined) {
          const added = await transaction
            .insertInto('user_volumes')
            .values({ user_id: id, server_name: serverName, volume, source })
            .onConflict((conflict) => conflict.column('source').doNothing())
            .returning('user_id')
            .executeTakeFirst();
          if (added === undefined)
            throw new HubError('conflict', text`The volume ${source} is in use already.`, {
              hint: text`Each is of one user, or of one server.`,
            });
        }
        await database.audit.record(transaction, {
          action: 'user.change',
          target: { kind: 'user', name },
          detail: {
            changed: volume,
            name: source ?? null,
            ...(serverName && { servers: serverName }),
          },
        });
      });
    },
  };
}
