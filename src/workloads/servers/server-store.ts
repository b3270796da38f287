import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { serverClientId } from '../../platform/protocol/client-id.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs } from '../../platform/store/lease-clock.ts';
import { prepareQuery, textsIn, textsOf } from '../../platform/store/queries.ts';
import { recordActivity } from '../../platform/store/record-activity.ts';
import { isForeignKeyViolation, isUniqueViolation } from '../../platform/store/storage-error.ts';
import type { RowChange, Tables } from '../../platform/store/tables.ts';
import { forgetClient } from '../../platform/store/token-makers.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { userNameOf } from '../../platform/store/user-name-of.ts';
import { nextStates, type Server, type ServerState } from './server.ts';
import {
  endedNow,
  instanceColumns,
  type ServerChange,
  selectServers,
  serverAuditEvent,
  toRowChange,
  toServer,
} from './server-row-store.ts';
import { nameTaken, noSuchUser } from './start-refusals.ts';

export interface ServerStore {
  find(userName: string, serverName: string): Promise<Server | undefined>;
  listOfUser(userName: string): Promise<Server[]>;
  /** By the id of the user; users without a server are not in it. */
  listByUser(
    userIds: readonly string[],
    options?: { readonly withStopped: boolean },
  ): Promise<ReadonlyMap<string, readonly Server[]>>;
  findById(id: string): Promise<Server | undefined>;
  /** Every server that is not stopped. */
  listActive(): Promise<Server[]>;
  /** Ids of those of these servers that are not stopped. */
  activeAmong(serverIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Creates a stopped server, or returns the one that exists. */
  ensure(userId: string, serverName: string, displayName?: string): Promise<Server>;
  /** As `ensure`, for a named server; undefined where the user has as many of these as are allowed. */
  ensureWithin(
    limit: number,
    userId: string,
    serverName: string,
    displayName?: string,
  ): Promise<Server | undefined>;
  /**
   * Moves a server to another state in one statement; false when it was not in a state from which
   * that one can be reached, for example because another request was faster, or is another instance's than
   * `ownedBy`. `on` is a transaction that it is part of.
   */
  moveTo(
    id: string,
    state: ServerState,
    change?: ServerChange,
    ownedBy?: string,
    on?: HubDatabase['kysely'],
  ): Promise<boolean>;
  /** Changes a stopped server; false when it is not stopped. Throws `conflict` for a taken name. */
  changeStopped(
    id: string,
    change: {
      readonly name?: string | undefined;
      readonly displayName?: string | undefined;
      readonly userOptions?: Readonly<Record<string, unknown>> | undefined;
    },
  ): Promise<boolean>;
  /** Bytes of the options of all servers of a user but one, as JSON. */
  optionsBytesBeside(userName: string, serverName: string): Promise<number>;
  update(id: string, change: ServerChange, ownedBy?: string): Promise<void>;
  delete(id: string): Promise<void>;
  recordActivity(entries: ReadonlyMap<string, Date>): Promise<void>;
}

export function createServerStore(database: HubDatabase): ServerStore {
  const { kysely, audit } = database;
  const select = (on = kysely) => selectServers(database, on);

  interface ByUser {
    /** JSON of a list. */
    readonly userIds: string;
  }
  // SQLite keeps to the order of a cross join: it would look up all the users first, most without a server.
  const ofUsers = ({ userIds }: ByUser) =>
    kysely
      .selectFrom('servers')
      .crossJoin('users')
      .whereRef('users.id', '=', 'servers.user_id')
      .where('servers.user_id', 'in', textsIn(userIds, database))
      .leftJoin('instances', 'instances.id', 'servers.instance_id')
      .selectAll('servers')
      .select(['users.name as user_name', ...instanceColumns, databaseTimeMs(database).as('now')])
      .orderBy('servers.name');
  const selectByUser = prepareQuery(kysely, ofUsers);
  const selectActiveByUser = prepareQuery(kysely, (given: ByUser) =>
    ofUsers(given).where('servers.state', '!=', 'stopped'),
  );

  async function ensure(
    on: Kysely<Tables>,
    userId: string,
    serverName: string,
    displayName: string | undefined,
  ): Promise<Server> {
    const inserted = await on
      .insertInto('servers')
      .values({
        id: randomUUID(),
        user_id: userId,
        name: serverName,
        display_name: displayName ?? null,
        state: 'stopped',
        url: null,
        spawner_state: '{}',
        user_options: '{}',
        failure: null,
        created_at: Date.now(),
        started_at: null,
        last_activity_at: null,
      })
      .onConflict((conflict) => conflict.columns(['user_id', 'name']).doNothing())
      .executeTakeFirst()
      .catch((error: unknown) => {
        if (!isForeignKeyViolation(error)) throw error;
        throw noSuchUser(error);
      });
    const row = await select(on)
      .where('servers.user_id', '=', userId)
      .where('servers.name', '=', serverName)
      .executeTakeFirst();
    // Deleted between the two, with the user.
    if (row === undefined) throw noSuchUser();
    // The default server is every user's.
    if (inserted.numInsertedOrUpdatedRows === 1n && serverName !== '') {
      await audit.record(on, serverAuditEvent('server.create', row));
    }
    return toServer(row);
  }

  const store: ServerStore = {
    async find(userName, serverName) {
      const row = await select()
        .where('users.name', '=', userName)
        .where('servers.name', '=', serverName)
        .executeTakeFirst();
      return row === undefined ? undefined : toServer(row);
    },

    async listOfUser(userName) {
      const rows = await select()
        .where('users.name', '=', userName)
        .orderBy('servers.name')
        .execute();
      return rows.map(toServer);
    },

    async listByUser(userIds, { withStopped } = { withStopped: true }) {
      const list = withStopped ? selectByUser : selectActiveByUser;
      const rows = await list({ userIds: JSON.stringify(userIds) });
      return Map.groupBy(rows.map(toServer), ({ userId }) => userId);
    },

    async findById(id) {
      const row = await select().where('servers.id', '=', id).executeTakeFirst();
      return row === undefined ? undefined : toServer(row);
    },

    async listActive() {
      const rows = await select().where('servers.state', '!=', 'stopped').execute();
      return rows.map(toServer);
    },

    async activeAmong(serverIds) {
      const rows = await kysely
        .selectFrom('servers')
        .select('id')
        .where('state', '!=', 'stopped')
        .where('id', 'in', textsOf(serverIds, database))
        .execute();
      return new Set(rows.map(({ id }) => id));
    },

    // The default server needs no record of its own: many are made at once when many users come.
    ensure: (userId, serverName, displayName) =>
      serverName === ''
        ? ensure(kysely, userId, serverName, displayName)
        : database.transaction((transaction) =>
            ensure(transaction, userId, serverName, displayName),
          ),

    ensureWithin: (limit, userId, serverName, displayName) =>
      database.transaction(async (transaction) => {
        await lockUser(transaction, database, userId);
        const named = await transaction
          .selectFrom('servers')
          .select('name')
          .where('user_id', '=', userId)
          .where('name', '!=', '')
          .execute();
        const isThere = named.some(({ name }) => name === serverName);
        if (!isThere && named.length >= limit) return undefined;
        return ensure(transaction, userId, serverName, displayName);
      }),

    async moveTo(id, state, change = {}, ownedBy, on = kysely) {
      const formerStates = (Object.keys(nextStates) as ServerState[]).filter((former) =>
        (nextStates[former] as readonly ServerState[]).includes(state),
      );
      let query = on
        .updateTable('servers')
        .set({
          ...toRowChange(change),
          ...(state === 'stopped' && endedNow()),
          // To start a server is to use it.
          ...(state === 'running' && { last_activity_at: Date.now() }),
          state,
        })
        .where('id', '=', id)
        .where('state', 'in', formerStates);
      if (ownedBy !== undefined) query = query.where('instance_id', '=', ownedBy);
      const result = await query.executeTakeFirst();
      return result.numUpdatedRows > 0n;
    },

    async changeStopped(id, { name, displayName, userOptions }) {
      const row: RowChange<'servers'> =
        userOptions === undefined ? {} : toRowChange({ userOptions });
      if (name !== undefined) row.name = name;
      if (displayName !== undefined) row.display_name = displayName;
      if (Object.keys(row).length === 0) return true;
      try {
        const isChanged = await database.transaction(async (transaction) => {
          const changed = await transaction
            .updateTable('servers')
            .set(row)
            .where('id', '=', id)
            .where('state', '=', 'stopped')
            .returning(['id', 'name', 'user_id'])
            .executeTakeFirst();
          if (changed === undefined) return false;
          const user_name = (await userNameOf(transaction, changed.user_id)) ?? '';
          const auditEvent = serverAuditEvent('server.change', { ...changed, user_name });
          await audit.record(transaction, { ...auditEvent, detail: { changed: Object.keys(row) } });
          return true;
        });
        // Scopes name the server: another one may get this name.
        if (name !== undefined) database.announceChange({ kind: 'rights_changed' });
        return isChanged;
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw nameTaken(error);
      }
    },

    async optionsBytesBeside(userName, serverName) {
      const { bytes } = await kysely
        .selectFrom('servers')
        .innerJoin('users', 'users.id', 'servers.user_id')
        .where('users.name', '=', userName)
        .where('servers.name', '!=', serverName)
        .select(sql<number | string | null>`sum(octet_length(user_options))`.as('bytes'))
        .executeTakeFirstOrThrow();
      return Number(bytes ?? 0);
    },

    async update(id, change, ownedBy) {
      const row = toRowChange(change);
      if (Object.keys(row).length === 0) return;
      let query = kysely.updateTable('servers').set(row).where('id', '=', id);
      if (ownedBy !== undefined) query = query.where('instance_id', '=', ownedBy);
      await query.execute();
    },

    async delete(id) {
      const wasAllowed = await database.transaction(async (transaction) => {
        const share = await transaction
          .selectFrom('shares')
          .select('id')
          .where('server_id', '=', id)
          .executeTakeFirst();
        const deleted = await transaction
          .deleteFrom('servers')
          .where('id', '=', id)
          .where('state', '=', 'stopped')
          .returning(['name', 'user_id'])
          .executeTakeFirst();
        if (deleted === undefined) return false;
        const user_name = (await userNameOf(transaction, deleted.user_id)) ?? '';
        await audit.record(
          transaction,
          serverAuditEvent('server.delete', { ...deleted, user_name }),
        );
        const clientId = serverClientId(user_name, deleted.name);
        const hadGrants = await forgetClient(transaction, database, clientId);
        return hadGrants || share !== undefined;
      });
      if (wasAllowed) database.announceChange({ kind: 'rights_changed' });
    },

    recordActivity: (entries) => recordActivity(database, 'servers', entries),
  };
  return store;
}
