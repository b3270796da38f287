import type { Kysely } from 'kysely';
import type { GroupConfig } from '../../platform/config/config.ts';
import type { RequireVersion } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf, textsOf } from '../../platform/store/queries.ts';
import { isUniqueViolation } from '../../platform/store/storage-error.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';
import { syncConfiguredGroups } from './configured-groups-store.ts';
import {
  addMember,
  addNamedMembers,
  deleteGroup,
  ensureGroup,
  groupAuditEvent,
  newGroupRow,
} from './group-rows-store.ts';
import { checkGroupVersion, shareGroup } from './group-version-store.ts';
import { normaliseUserName, validateGroupName } from './user-name.ts';

/** A set of users. */
export interface Group {
  readonly id: string;
  readonly name: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** `config`, `api` or the name of the authenticator that manages it. */
  readonly origin: string;
}

/** Each change is made only to a version of the group and its members that may be changed. */
export interface GroupStore {
  /** Throws `not_found`. */
  getByName(name: string): Promise<Group>;
  /** One page in the order of names, and how many there are on all pages. */
  list(options: {
    readonly offset: number;
    readonly limit: number;
    /** Leaves out all other groups. */
    readonly onlyNames?: readonly string[];
  }): Promise<{ items: Group[]; total: number }>;
  /**
   * Creates groups with the same members, all or none. Throws `conflict` when a name is taken and
   * `bad_request` that names the users there are not.
   */
  createAll(options: {
    readonly names: readonly string[];
    readonly memberNames: readonly string[];
    readonly origin: string;
  }): Promise<Group[]>;
  /** Deletes the group with its memberships and roles; false when there was none. */
  delete(name: string, requireVersion?: RequireVersion): Promise<boolean>;
  /** Throws `not_found` for the group and `bad_request` that names the users there are not. */
  addMembers(
    groupName: string,
    userNames: readonly string[],
    origin: string,
    requireVersion?: RequireVersion,
  ): Promise<void>;
  /** Throws `not_found` for the group; users who are not members are passed over. */
  removeMembers(
    groupName: string,
    userNames: readonly string[],
    requireVersion?: RequireVersion,
  ): Promise<void>;
  /** Throws as `addMembers` does, and `conflict` when one of them is not in the first group. */
  moveMembers(
    groupNames: { readonly from: string; readonly to: string },
    userNames: readonly string[],
    origin: string,
  ): Promise<void>;
  groupNamesOf(userName: string): Promise<string[]>;
  /** Names in order by the id of the user; users without a group are not in it. */
  groupNamesByUser(userIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Names in order by the name of the group; groups without members are not in it. */
  memberNamesByGroup(
    groupNames: readonly string[],
  ): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Every group that has members, with their names. */
  memberships(): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
  /** Throws `not_found`. */
  setProperties(
    name: string,
    properties: Readonly<Record<string, unknown>>,
    requireVersion?: RequireVersion,
  ): Promise<void>;
  /**
   * Makes the groups that `origin` put the user into exactly these, creating those there are not.
   * Memberships of another origin stay. Throws `not_found` for the user.
   */
  syncMembershipsOf(userName: string, groupNames: readonly string[], origin: string): Promise<void>;
  /**
   * Brings the groups of `Hub.load_groups`, and those that left it, up to date. Those that only
   * other settings name are made and kept. Returns the new members by group.
   */
  syncConfigured(
    groups: readonly GroupConfig[],
    otherNames?: readonly string[],
  ): Promise<ReadonlyMap<string, readonly string[]>>;
}

export function createGroupStore(database: HubDatabase): GroupStore {
  const { kysely, audit } = database;

  async function change(work: (transaction: Kysely<Tables>) => Promise<void>): Promise<void> {
    await database.transaction(work);
    database.announceChange({ kind: 'groups_changed' });
  }

  async function putIn(
    transaction: Kysely<Tables>,
    groupName: string,
    userNames: readonly string[],
    origin: string,
  ): Promise<void> {
    const { id } = await getRow(transaction, groupName);
    const users = await addNamedMembers(transaction, database, id, userNames, origin);
    const auditEvent = groupAuditEvent('group.add_members', groupName);
    await audit.record(transaction, { ...auditEvent, users });
  }

  /** Tells how many had been in it. */
  async function takeOut(
    transaction: Kysely<Tables>,
    groupName: string,
    userNames: readonly string[],
  ): Promise<number> {
    const { id } = await getRow(transaction, groupName);
    await shareGroup(transaction, database, id);
    const users = userNames.map(normaliseUserName);
    const { numDeletedRows } = await transaction
      .deleteFrom('group_members')
      .where('group_id', '=', id)
      .where('user_id', 'in', (select) =>
        select
          .selectFrom('users')
          .select('users.id')
          .where('users.name', 'in', textsOf(users, database)),
      )
      .executeTakeFirst();
    const auditEvent = groupAuditEvent('group.remove_members', groupName);
    await audit.record(transaction, { ...auditEvent, users });
    return Number(numDeletedRows);
  }

  return {
    async getByName(name) {
      return toGroup(await getRow(kysely, name));
    },

    async list({ offset, limit, onlyNames }) {
      let query = kysely.selectFrom('groups');
      if (onlyNames !== undefined) query = query.where('name', 'in', textsOf(onlyNames, database));
      const total = await countOf(query);
      const rows = await query.selectAll().orderBy('name').limit(limit).offset(offset).execute();
      return { items: rows.map(toGroup), total };
    },

    async createAll({ names, memberNames, origin }) {
      const rows = [...new Set(names.map(validateGroupName))].map((name) =>
        newGroupRow(name, origin),
      );
      await change(async (transaction) => {
        for (const row of rows) {
          await insertNewGroup(transaction, row);
          const users = await addNamedMembers(transaction, database, row.id, memberNames, origin);
          await audit.record(transaction, { ...groupAuditEvent('group.create', row.name), users });
        }
      });
      return rows.map(toGroup);
    },

    async delete(name, requireVersion) {
      const isDeleted = await database.transaction(async (transaction) => {
        await checkGroupVersion(transaction, database, name, requireVersion);
        if (!(await deleteGroup(transaction, name.normalize('NFC')))) return false;
        await audit.record(transaction, groupAuditEvent('group.delete', name));
        return true;
      });
      if (isDeleted) database.announceChange({ kind: 'groups_changed' });
      return isDeleted;
    },

    async addMembers(groupName, userNames, origin, requireVersion) {
      await change(async (transaction) => {
        await checkGroupVersion(transaction, database, groupName, requireVersion);
        await putIn(transaction, groupName, userNames, origin);
      });
    },

    async removeMembers(groupName, userNames, requireVersion) {
      await change(async (transaction) => {
        await checkGroupVersion(transaction, database, groupName, requireVersion);
        await takeOut(transaction, groupName, userNames);
      });
    },

    async moveMembers({ from, to }, userNames, origin) {
      const names = [...new Set(userNames)];
      await change(async (transaction) => {
        if ((await takeOut(transaction, from, names)) < names.length)
          throw new HubError('conflict', text`Not in the group “${from}”.`);
        await putIn(transaction, to, names, origin);
      });
    },

    async groupNamesOf(userName) {
      const rows = await selectMemberships(kysely)
        .where('users.name', '=', normaliseUserName(userName))
        .execute();
      return rows.map(({ groupName }) => groupName);
    },

    async groupNamesByUser(userIds) {
      const rows = await kysely
        .selectFrom('group_members')
        .innerJoin('groups', 'groups.id', 'group_members.group_id')
        .select(['group_members.user_id as userId', 'groups.name as groupName'])
        .where('group_members.user_id', 'in', textsOf(userIds, database))
        .orderBy('groups.name')
        .execute();
      return namesBy(rows.map(({ userId, groupName }) => [userId, groupName]));
    },

    async memberNamesByGroup(groupNames) {
      const rows = await selectMemberships(kysely)
        .where('groups.name', 'in', textsOf(groupNames, database))
        .execute();
      return namesBy(rows.map(({ groupName, userName }) => [groupName, userName]));
    },

    async memberships() {
      const rows = await selectMemberships(kysely).execute();
      const members = new Map<string, Set<string>>();
      for (const { groupName, userName } of rows) {
        const names = members.get(groupName);
        if (names === undefined) members.set(groupName, new Set([userName]));
        else names.add(userName);
      }
      return members;
    },

    async setProperties(name, properties, requireVersion) {
      await change(async (transaction) => {
        await checkGroupVersion(transaction, database, name, requireVersion);
        const { numUpdatedRows } = await transaction
          .updateTable('groups')
          .set({ properties: JSON.stringify(properties) })
          .where('name', '=', name.normalize('NFC'))
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw noSuchGroup();
        const detail = { properties: Object.keys(properties) };
        await audit.record(transaction, groupAuditEvent('group.change', name, detail));
      });
    },

    async syncMembershipsOf(userName, groupNames, origin) {
      const wanted = new Set(groupNames.map(validateGroupName));
      const isChanged = await database.transaction((transaction) =>
        syncMemberships(transaction, database, { userName, wanted, origin }),
      );
      // Each login comes here, and mostly nothing is new.
      if (isChanged) database.announceChange({ kind: 'groups_changed' });
    },

    async syncConfigured(groups, otherNames = []) {
      const added = await database.transaction((transaction) =>
        syncConfiguredGroups(transaction, database, groups, otherNames),
      );
      database.announceChange({ kind: 'groups_changed' });
      return added;
    },
  };
}

function namesBy(pairs: readonly (readonly [string, string])[]): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const [key, name] of pairs) {
    const listed = names.get(key);
    if (listed === undefined) names.set(key, [name]);
    else listed.push(name);
  }
  return names;
}

function selectMemberships(kysely: Kysely<Tables>) {
  return kysely
    .selectFrom('group_members')
    .innerJoin('groups', 'groups.id', 'group_members.group_id')
    .innerJoin('users', 'users.id', 'group_members.user_id')
    .select(['groups.name as groupName', 'users.name as userName'])
    .orderBy('groups.name')
    .orderBy('users.name');
}

async function syncMemberships(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'audit' | 'dialect'>,
  {
    userName,
    wanted,
    origin,
  }: {
    readonly userName: string;
    readonly wanted: ReadonlySet<string>;
    readonly origin: string;
  },
): Promise<boolean> {
  const user = await transaction
    .selectFrom('users')
    .select('id')
    .where('name', '=', normaliseUserName(userName))
    .executeTakeFirst();
  if (user === undefined) throw new HubError('not_found', text`There is no such user.`);
  const current = await transaction
    .selectFrom('group_members')
    .innerJoin('groups', 'groups.id', 'group_members.group_id')
    .select(['groups.id', 'groups.name', 'group_members.origin'])
    .where('group_members.user_id', '=', user.id)
    .execute();

  const surplus = current.filter((row) => row.origin === origin && !wanted.has(row.name));
  for (const { id } of surplus) {
    await shareGroup(transaction, database, id);
    await transaction
      .deleteFrom('group_members')
      .where('group_id', '=', id)
      .where('user_id', '=', user.id)
      .execute();
  }
  const missing = [...wanted].filter((name) => current.every((row) => row.name !== name)).sort();
  for (const name of missing) {
    const id = await ensureGroup(transaction, name, origin);
    await addMember(transaction, id, user.id, origin);
  }
  const users = [normaliseUserName(userName)];
  const detail = { origin };
  await database.audit.record(
    transaction,
    ...surplus.map(({ name }) => ({
      ...groupAuditEvent('group.remove_members', name, detail),
      users,
    })),
    ...missing.map((name) => ({ ...groupAuditEvent('group.add_members', name, detail), users })),
  );
  return surplus.length + missing.length > 0;
}

function toGroup({ id, name, properties, origin }: Row<'groups'>): Group {
  return { id, name, properties: JSON.parse(properties) as Record<string, unknown>, origin };
}

async function insertNewGroup(kysely: Kysely<Tables>, row: Row<'groups'>): Promise<void> {
  try {
    await kysely.insertInto('groups').values(row).execute();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new HubError('conflict', text`The group ${JSON.stringify(row.name)} exists already.`, {
      cause: error,
    });
  }
}

function noSuchGroup(): HubError {
  return new HubError('not_found', text`There is no such group.`);
}

async function findRow(kysely: Kysely<Tables>, name: string): Promise<Row<'groups'> | undefined> {
  return await kysely
    .selectFrom('groups')
    .selectAll()
    .where('name', '=', name.normalize('NFC'))
    .executeTakeFirst();
}

async function getRow(kysely: Kysely<Tables>, name: string): Promise<Row<'groups'>> {
  const row = await findRow(kysely, name);
  if (row === undefined) throw noSuchGroup();
  return row;
}
