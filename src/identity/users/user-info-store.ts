import type { Kysely } from 'kysely';
import { createChangeAwareCache, watchChanges } from '../../platform/store/change-aware-cache.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';
import { isForeignKeyViolation } from '../../platform/store/storage-error.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { withoutUser } from '../../platform/store/user-name-of.ts';
import { noInfo, searchTextOf, type UserInfo } from './user-info.ts';
import type { User } from './user-store.ts';

/** Display names, e-mail addresses and pictures of users; they go with their user. */
export interface UserInfoStore {
  /** All of it undefined where nothing is known. */
  of(userId: string): Promise<UserInfo>;
  /** By the id of the user; one query at most, however many there are. */
  ofAll(userIds: readonly string[]): Promise<ReadonlyMap<string, UserInfo>>;
  /** By the name of the user, of those who have one. */
  displayNames(userNames: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Takes over what an authenticator says; nothing is written where nothing is new. */
  sync(user: Pick<User, 'id'>, info: UserInfo): Promise<void>;
  /** Keeps what an administrator or the user has typed, noted in the audit log. Throws `not_found`. */
  change(user: Pick<User, 'id' | 'name'>, info: UserInfo): Promise<void>;
}

const cached = 10_000;

interface Known {
  readonly userId: string;
  readonly info: UserInfo;
}

export function createUserInfoStore(database: HubDatabase): UserInfoStore {
  const { kysely, audit } = database;
  const cache = createChangeAwareCache<Known, never>({
    changes: watchChanges(database),
    max: cached,
    invalidatedBy: { changeOf: ({ userId }) => userId },
  });

  const announce = (userId: string) =>
    database.announceChange({ kind: 'user_info_changed', userId });

  async function of(userId: string): Promise<UserInfo> {
    const { info } = await cache.getOrLoad(userId, async () => {
      const row = await kysely
        .selectFrom('user_info')
        .selectAll()
        .where('user_id', '=', userId)
        .executeTakeFirst();
      return { userId, info: row === undefined ? noInfo : toInfo(row) };
    });
    return info;
  }

  return {
    of,

    async ofAll(userIds) {
      const beginning = cache.begin();
      const found = new Map<string, UserInfo>();
      const unknown = userIds.filter((userId) => {
        const known = cache.get(userId);
        if (known !== undefined) found.set(userId, known.info);
        return known === undefined;
      });
      if (unknown.length === 0) return found;
      const rows = await kysely
        .selectFrom('user_info')
        .selectAll()
        .where('user_id', 'in', textsOf(unknown, database))
        .execute();
      const byUser = new Map(rows.map((row) => [row.user_id, toInfo(row)]));
      for (const userId of unknown) {
        const info = byUser.get(userId) ?? noInfo;
        cache.put(userId, { userId, info }, beginning);
        found.set(userId, info);
      }
      return found;
    },

    async displayNames(userNames) {
      if (userNames.length === 0) return new Map();
      const rows = await kysely
        .selectFrom('user_info')
        .innerJoin('users', 'users.id', 'user_info.user_id')
        .select(['users.name', 'user_info.display_name'])
        .where('users.name', 'in', textsOf(userNames, database))
        .where('user_info.display_name', 'is not', null)
        .execute();
      return new Map(rows.map(({ name, display_name }) => [name, display_name ?? '']));
    },

    async sync({ id }, info) {
      if (areAlike(await of(id), info)) return;
      try {
        await write(kysely, id, info);
      } catch (error) {
        // Deleted meanwhile; the login finds out by itself.
        if (isForeignKeyViolation(error)) return;
        throw error;
      }
      announce(id);
    },

    async change({ id, name }, info) {
      try {
        await database.transaction(async (transaction) => {
          await write(transaction, id, info);
          const target = { kind: 'user', name } as const;
          await audit.record(transaction, { action: 'user_info.change', target });
        });
      } catch (error) {
        throw withoutUser(error);
      }
      announce(id);
    },
  };
}

async function write(on: Kysely<Tables>, userId: string, info: UserInfo): Promise<void> {
  const values = {
    display_name: info.displayName ?? null,
    email: info.email ?? null,
    email_verified: Number(info.isEmailVerified),
    picture_url: info.pictureUrl ?? null,
    authenticator: info.authenticator ?? null,
    search_text: searchTextOf(info),
  };
  await on
    .insertInto('user_info')
    .values({ user_id: userId, ...values })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
    .execute();
}

function toInfo(row: Row<'user_info'>): UserInfo {
  return {
    displayName: row.display_name ?? undefined,
    email: row.email ?? undefined,
    isEmailVerified: row.email_verified === 1,
    pictureUrl: row.picture_url ?? undefined,
    authenticator: row.authenticator ?? undefined,
  };
}

function areAlike(one: UserInfo, other: UserInfo): boolean {
  return (Object.keys(noInfo) as (keyof UserInfo)[]).every((key) => one[key] === other[key]);
}
