import type { User } from '../../identity/users/user-store.ts';
import type { HubDatabase } from '../../platform/store/database.ts';

/** Which services users marked as their favourites, and which they used last. */
export interface FavouriteStore {
  /** Names of the favourites of a user; those of services that are gone are kept for their return. */
  listOfUser(userId: string): Promise<ReadonlySet<string>>;
  set(userId: string, serviceName: string, isFavourite: boolean): Promise<void>;
  /**
   * When a user last used an app, by the id of the OAuth client: by when it last showed a token of the user, and by the
   * latest permissions in the audit log, which outlast the login.
   */
  lastUsesOf(user: Pick<User, 'id' | 'name'>): Promise<ReadonlyMap<string, Date>>;
}

/** Newest entries of a user in the audit log: more would take long for one who does much. */
const maxLookedAt = 1_000;

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

    async lastUsesOf({ id, name }) {
      const ofTokens = kysely
        .selectFrom('access_tokens')
        .select(({ fn }) => ['client_id', fn.coalesce('last_used_at', 'created_at').as('at')])
        .where('user_id', '=', id)
        .where('client_id', 'is not', null);
      const latest = kysely
        .selectFrom('audit')
        .select(['action', 'target_name', 'at'])
        .where('actor_kind', '=', 'user')
        .where('actor_name', '=', name)
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(maxLookedAt);
      const ofPermissions = kysely
        .selectFrom(latest.as('latest'))
        .select(['target_name as client_id', 'at'])
        .where('action', '=', 'oauth.authorize');
      const rows = await kysely
        .selectFrom(ofTokens.unionAll(ofPermissions).as('uses'))
        .select(({ fn }) => ['client_id', fn.max('at').as('at')])
        .groupBy('client_id')
        .execute();
      return new Map(rows.map(({ client_id, at }) => [client_id ?? '', new Date(Number(at))]));
    },
  };
}
