import type { HubDatabase } from '../../platform/store/database.ts';

/** Which services users marked as their favourites, and which they used last. */
export interface FavouriteStore {
  /** Names of the favourites of a user; those of services that are gone are kept for their return. */
  listOfUser(userId: string): Promise<ReadonlySet<string>>;
  set(userId: string, serviceName: string, isFavourite: boolean): Promise<void>;
  /** When apps last showed a token of the user, by the id of the OAuth client. */
  lastUsesOf(userId: string): Promise<ReadonlyMap<string, Date>>;
}

export function createFavouriteStore({ kysely }: Pick<HubDatabase, 'kysely'>): FavouriteStore {
  return {
    async listOfUser(userId) {
      const rows = await kysely
        .selectFrom('favourite_services')
        .select('service_name')
        .where('user_id', '=', userId)
        .execute();
      return new Set(rows.map(({ service_name }) => service_name));
    },

    async set(userId, serviceName, isFavourite) {
      const row = { user_id: userId, service_name: serviceName };
      if (isFavourite) {
        await kysely
          .insertInto('favourite_services')
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        return;
      }
      await kysely
        .deleteFrom('favourite_services')
        .where('user_id', '=', userId)
        .where('service_name', '=', serviceName)
        .execute();
    },

    async lastUsesOf(userId) {
      const rows = await kysely
        .selectFrom('access_tokens')
        .select(({ fn }) => ['client_id', fn.max('last_used_at').as('at')])
        .where('user_id', '=', userId)
        .where('client_id', 'is not', null)
        .where('last_used_at', 'is not', null)
        .groupBy('client_id')
        .execute();
      return new Map(rows.map(({ client_id, at }) => [client_id ?? '', new Date(Number(at))]));
    },
  };
}
