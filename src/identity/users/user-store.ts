import { type Kysely, sql } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import { serverClientId } from '../../platform/protocol/client-id.ts';
import { createChangeAwareCache, watchChanges } from '../../platform/store/change-aware-cache.ts';
import { type HubDatabase, manyRows } from '../../platform/store/database.ts';
import type { ListPage } from '../../platform/store/page-edge.ts';
import { countOf, prepareQuery } from '../../platform/store/queries.ts';
import { recordActivity } from '../../platform/store/record-activity.ts';
import { endClientLogins } from '../../platform/store/session-grants.ts';
import { deleteSettingsOf } from '../../platform/store/setting-store.ts';
import { isUniqueViolation } from '../../platform/store/storage-error.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { deleteMadeWith, forgetClient } from '../../platform/store/token-makers.ts';
import { userNameOf } from '../../platform/store/user-name-of.ts';
import { text } from '../../platform/texts/text.ts';
import { endLinksOf } from './invitation-store.ts';
import { type LastAdministrator, requireAdministrator } from './last-administrator-store.ts';
import { claimSystemAccount, retireSystemAccount } from './system-account-store.ts';
import { countUsers, filterUsers, type UserCounts, type UserFilter } from './user-filters-store.ts';
import { normaliseUserName, validateUserName } from './user-name.ts';
import { createUserPages, type UserListOptions, userKey } from './user-pages-store.ts';
import {
  ensureUserRow,
  insertMissingUsers,
  type NewUserFlags,
  newUserRow,
  type UserRow,
  userCreated,
} from './user-rows-store.ts';

/** A person with an account. */
export interface User {
  readonly id: string;
  readonly name: string;
  readonly isAdmin: boolean;
  /** An administrator made the account; it may log in without an allow list. */
  readonly isInvited: boolean;
  readonly createdAt: Date;
  readonly lastActivityAt: Date | undefined;
  /** Name under which the servers run on the machine; undefined until it is decided. */
  readonly systemAccount: string | undefined;
  /** Whether logins, tokens, servers and shares are as if they were not there. */
  readonly isSuspended: boolean;
  /** Authenticator for which it was made before its owner came; undefined: as the configuration says. */
  readonly madeFor: string | undefined;
}

/** A user in a list. */
export interface ListedUser extends User {
  /** Of the user's place in it, for the edge of a page. */
  readonly key: string;
}

export interface UserStore {
  findByName(name: string): Promise<User | undefined>;
  findById(id: string): Promise<User | undefined>;
  /** Throws `not_found`. */
  getByName(name: string): Promise<User>;
  /** One page, by its offset or its edge. */
  list(options: UserListOptions): Promise<ListPage<ListedUser>>;
  /** Of all pages; a second or two old at most, unless users are named. */
  countByStatus(filter: Omit<UserFilter, 'status'>): Promise<UserCounts>;
  /** Names in order, of at most `limit` users. */
  listNames(filter: UserFilter, limit: number): Promise<string[]>;
  listAdministratorNames(): Promise<string[]>;
  /** Throws `conflict` when the name is taken and `bad_request` when it cannot be a name. */
  create(user: NewUserFlags & { readonly name: string }): Promise<User>;
  /** The user of this name, made when there is none. Throws `bad_request` when it cannot be a name. */
  ensure(name: string): Promise<User>;
  /**
   * Creates those users who do not exist, all in one step, and returns them in the order of their
   * names here. Throws `bad_request` when one cannot be a name.
   */
  createMissing(names: readonly string[], flags?: NewUserFlags): Promise<User[]>;
  /** Throws `not_found`, and `conflict` for the last administrator. */
  setAdmin(id: string, isAdmin: boolean, options?: LastAdministrator): Promise<void>;
  /** Throws `not_found`, and `conflict` for the last administrator. */
  setSuspended(id: string, isSuspended: boolean, options?: LastAdministrator): Promise<void>;
  /**
   * Throws `not_found`, `conflict` or `bad_request`. Roles given to the user stay, and so does the
   * system account, which no new name decides.
   */
  rename(id: string, name: string): Promise<void>;
  /** Deletes the user and everything of theirs; false when there was no such user. Throws `conflict` for the last administrator. */
  delete(id: string, options?: LastAdministrator): Promise<boolean>;
  /** Moves the last activity of users forward, never back; unknown ids are passed over. */
  recordActivity(entries: ReadonlyMap<string, Date>): Promise<void>;
  count(): Promise<number>;
}

/** Servers change all the time: counts of them are this old at most. */
const countTtlMs = 2_000;
/** Searches whose counts are remembered. */
const maxCounts = 100;

export function createUserStore(
  database: HubDatabase,
  { manyUsers = manyRows }: { readonly manyUsers?: number } = {},
): UserStore {
  const { kysely, audit } = database;

  const selectByName = prepareQuery(kysely, ({ name }: { readonly name: string }) =>
    kysely.selectFrom('users').selectAll().where('name', '=', name),
  );

  const selectById = prepareQuery(kysely, ({ id }: { readonly id: string }) =>
    kysely.selectFrom('users').selectAll().where('id', '=', id),
  );
  async function findByName(name: string): Promise<User | undefined> {
    const [row] = await selectByName({ name: normaliseUserName(name) });
    return row && toUser(row);
  }

  const changes = watchChanges(database);
  const counted = createChangeAwareCache<number, never>({
    changes,
    max: 1,
    invalidatedBy: { newUsers: true },
  });
  const countedByStatus = createChangeAwareCache<UserCounts, never>({
    changes,
    max: maxCounts,
    ttlMs: countTtlMs,
    invalidatedBy: { newUsers: true },
  });
  const count = () => countOf(kysely.selectFrom('users'));

  const countAll = () => counted.getOrLoad('all', count);

  /** The database as it is asked what may take long. */
  async function forLong(): Promise<Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>> {
    const isLong = (await countAll()) >= manyUsers;
    return {
      dialect: database.dialect,
      now: database.now,
      kysely: isLong ? database.longReads : kysely,
    };
  }

  async function countFound(filter: UserFilter): Promise<number> {
    const { kysely: reads } = await forLong();
    return countOf(filterUsers(reads.selectFrom('users'), filter, database));
  }

  const list = createUserPages(database, { countAll, countFound, forLong });

  /** Ends what visitors allowed the servers of a user, whose name is no longer theirs. */
  async function forgetServerClients(
    transaction: Kysely<Tables>,
    userName: string,
    servers: readonly { readonly name: string }[],
  ): Promise<void> {
    for (const { name } of servers) {
      await forgetClient(transaction, database, serverClientId(userName, name));
    }
  }

  async function createMissing(names: readonly string[], flags?: NewUserFlags): Promise<User[]> {
    const rows = await insertMissingUsers(database, names, flags);
    if (rows.length > 0) database.announceChange({ kind: 'user_added' });
    return rows.map(toUser);
  }

  return {
    findByName,

    async findById(id) {
      const [row] = await selectById({ id });
      return row && toUser(row);
    },

    async getByName(name) {
      const user = await findByName(name);
      if (user === undefined) throw noSuchUser();
      return user;
    },

    async list(options) {
      const page = await list(options);
      const keyOf = (row: Row<'users'>) => userKey(row, options.sort ?? 'name');
      return { ...page, items: page.items.map((row) => ({ ...toUser(row), key: keyOf(row) })) };
    },

    async countByStatus({ nameFilter = '', searchesInfoOf, groupName, onlyNames, serverState }) {
      const filter = { nameFilter, searchesInfoOf, groupName, onlyNames, serverState };
      if (onlyNames !== undefined || Array.isArray(searchesInfoOf)) {
        return countUsers(await forLong(), filter);
      }
      const key = JSON.stringify([nameFilter, searchesInfoOf, groupName, serverState]);
      return countedByStatus.getOrLoad(key, async () => countUsers(await forLong(), filter));
    },

    async listNames(filter, limit) {
      const { kysely: reads } = await forLong();
      const rows = await filterUsers(reads.selectFrom('users'), filter, database)
        .select('users.name')
        .orderBy('users.name')
        .limit(limit)
        .execute();
      return rows.map(({ name }) => name);
    },

    async listAdministratorNames() {
      const rows = await kysely
        .selectFrom('users')
        .select('name')
        .where(sql<boolean>`admin = 1`)
        .orderBy('name')
        .execute();
      return rows.map(({ name }) => name);
    },

    async create(user) {
      const row = newUserRow(user);
      await database.transaction(async (transaction) => {
        await refuseTakenName(transaction.insertInto('users').values(row).execute());
        await audit.record(transaction, userCreated(row));
      });
      database.announceChange({ kind: 'user_added' });
      return toUser(row);
    },

    async ensure(name) {
      const { row, isNew } = await database.transaction((transaction) =>
        ensureUserRow(transaction, database, name),
      );
      if (isNew) database.announceChange({ kind: 'user_added' });
      return toUser(row);
    },

    createMissing,

    async setAdmin(id, isAdmin, { mayBeLast = false } = {}) {
      await database.transaction(async (transaction) => {
        const changed = await transaction
          .updateTable('users')
          .set({ admin: Number(isAdmin) })
          .where('id', '=', id)
          .returning('name')
          .executeTakeFirst();
        if (changed === undefined) throw noSuchUser();
        if (!isAdmin && !mayBeLast) await requireAdministrator(transaction, database.dialect);
        await audit.record(transaction, {
          action: 'user.change',
          target: { kind: 'user', name: changed.name },
          detail: { admin: isAdmin },
        });
      });
      database.announceChange({ kind: 'rights_changed' });
    },

    async setSuspended(id, isSuspended, { mayBeLast = false } = {}) {
      await database.transaction(async (transaction) => {
        const changed = await transaction
          .updateTable('users')
          .set({ suspended_at: isSuspended ? database.now() : null })
          .where('id', '=', id)
          .returning(['name', 'admin'])
          .executeTakeFirst();
        if (changed === undefined) throw noSuchUser();
        if (isSuspended && changed.admin === 1 && !mayBeLast) {
          await requireAdministrator(transaction, database.dialect);
        }
        if (isSuspended) await endClientLogins(transaction, { user_id: id });
        await audit.record(transaction, {
          action: isSuspended ? 'user.suspend' : 'user.unsuspend',
          target: { kind: 'user', name: changed.name },
        });
      });
      database.announceChange({ kind: 'rights_changed' });
    },

    async rename(id, name) {
      const newName = validateUserName(name);
      await database.transaction(async (transaction) => {
        const former = await userNameOf(transaction, id);
        if (former === undefined) throw noSuchUser();
        await claimSystemAccount(transaction, { id, name: former });
        const servers = await transaction
          .selectFrom('servers')
          .select('name')
          .where('user_id', '=', id)
          .execute();
        await forgetServerClients(transaction, former, servers);
        const renamed = transaction
          .updateTable('users')
          .set({ name: newName })
          .where('id', '=', id);
        await refuseTakenName(renamed.execute());
        // Made for the person of the former name, and sent to an address of theirs.
        await endLinksOf(transaction, id);
        await transaction
          .updateTable('role_assignments')
          .set({ subject_name: newName })
          .where('subject_kind', '=', 'user')
          .where('subject_name', '=', former)
          .execute();
        await audit.record(transaction, {
          action: 'user.rename',
          target: { kind: 'user', name: newName },
          detail: { former },
        });
      });
      database.announceChange({ kind: 'rights_changed' });
    },

    async delete(id, { mayBeLast = false } = {}) {
      const isDeleted = await database.transaction(async (transaction) => {
        const name = await userNameOf(transaction, id);
        if (name === undefined) return false;
        // Before the user's row: who changes the state of a server locks its row first, and then the user's.
        const servers = await transaction
          .deleteFrom('servers')
          .where('user_id', '=', id)
          .returning('name')
          .execute();
        await forgetServerClients(transaction, name, servers);
        const tokens = await transaction
          .deleteFrom('access_tokens')
          .where('user_id', '=', id)
          .returning('id')
          .execute();
        await deleteMadeWith(
          transaction,
          database,
          tokens.map((token) => token.id),
        );
        await endClientLogins(transaction, { user_id: id });
        await retireSystemAccount(transaction, id);
        await deleteSettingsOf(transaction, id);
        // Everything else refers to the user's row and goes with it.
        const deleted = await transaction
          .deleteFrom('users')
          .where('id', '=', id)
          .returning('admin')
          .executeTakeFirst();
        // Another hub waited for, which has deleted it meanwhile.
        if (deleted === undefined) return false;
        if (deleted.admin === 1 && !mayBeLast)
          await requireAdministrator(transaction, database.dialect);
        // Last: who gives the user a role meanwhile has a lock on the row.
        await transaction
          .deleteFrom('role_assignments')
          .where('subject_kind', '=', 'user')
          .where('subject_name', '=', name)
          .execute();
        await audit.record(transaction, { action: 'user.delete', target: { kind: 'user', name } });
        return true;
      });
      if (isDeleted) database.announceChange({ kind: 'rights_changed' });
      return isDeleted;
    },

    recordActivity: (entries) => recordActivity(database, 'users', entries),

    count,
  };
}

function toUser(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    isAdmin: row.admin === 1,
    isInvited: row.invited === 1,
    isSuspended: row.suspended_at !== null,
    createdAt: new Date(row.created_at),
    lastActivityAt: row.last_activity_at === null ? undefined : new Date(row.last_activity_at),
    systemAccount: row.system_account ?? undefined,
    madeFor: row.made_for ?? undefined,
  };
}

/** That no user has a name or id. */
export function noSuchUser(): HubError {
  return new HubError('not_found', text`There is no such user.`);
}

/** That another user has a name. */
export function userNameTaken(cause?: unknown): HubError {
  return new HubError('conflict', text`A user with this name exists already.`, { cause });
}

async function refuseTakenName<T>(written: Promise<T>): Promise<T> {
  try {
    return await written;
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw userNameTaken(error);
  }
}
