import type { HubDatabase } from '../store/database.ts';
import { textsOf } from '../store/json-list.ts';
import { hasInIt } from '../store/like-pattern.ts';
import { normaliseUserName } from './user-name.ts';

/** One page of a list that can be long. */
interface PageOptions {
  readonly offset: number;
  readonly limit: number;
  /** Part of the name, in either case of ASCII letters. */
  readonly nameFilter?: string;
}

/** A group in a list. */
export interface ListedGroup {
  readonly name: string;
  readonly origin: string;
  readonly memberCount: number;
}

/** That a user is in a group, and who says so: `config`, `api` or the name of an authenticator. */
export interface Membership {
  readonly name: string;
  readonly origin: string;
}

/** Groups and members a page at a time: both can be very many. */
export interface GroupPages {
  listGroups(
    options: PageOptions & {
      /** Leaves out all other groups. */
      readonly onlyNames?: readonly string[] | undefined;
    },
  ): Promise<{ readonly items: ListedGroup[]; readonly total: number }>;
  /** Members by the order of their names. */
  listMembers(
    groupId: string,
    options: PageOptions,
  ): Promise<{ readonly items: Membership[]; readonly total: number }>;
  /** The groups of a user, in the order of their names. */
  membershipsOf(userName: string): Promise<Membership[]>;
}

export function createGroupPages(database: Pick<HubDatabase, 'kysely' | 'dialect'>): GroupPages {
  const { kysely } = database;

  return {
    async listGroups({ offset, limit, nameFilter = '', onlyNames }) {
      let query = kysely.selectFrom('groups');
      if (onlyNames !== undefined) query = query.where('name', 'in', textsOf(onlyNames, database));
      if (nameFilter !== '') query = query.where(hasInIt('groups.name', nameFilter));
      const { total } = await query
        .select((select) => select.fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow();
      const rows = await query
        .select(['groups.name', 'groups.origin'])
        .select((select) =>
          select
            .selectFrom('group_members')
            .whereRef('group_members.group_id', '=', 'groups.id')
            .select((of) => of.fn.countAll<number>().as('count'))
            .as('memberCount'),
        )
        .orderBy('groups.name')
        .limit(limit)
        .offset(offset)
        .execute();
      const items = rows.map((row) => ({ ...row, memberCount: Number(row.memberCount) }));
      return { items, total: Number(total) };
    },

    async listMembers(groupId, { offset, limit, nameFilter = '' }) {
      let query = kysely
        .selectFrom('group_members')
        .innerJoin('users', 'users.id', 'group_members.user_id')
        .where('group_members.group_id', '=', groupId);
      if (nameFilter !== '') query = query.where(hasInIt('users.name', nameFilter));
      const { total } = await query
        .select((select) => select.fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow();
      const items = await query
        .select(['users.name', 'group_members.origin'])
        .orderBy('users.name')
        .limit(limit)
        .offset(offset)
        .execute();
      return { items, total: Number(total) };
    },

    membershipsOf: (userName) =>
      kysely
        .selectFrom('group_members')
        .innerJoin('groups', 'groups.id', 'group_members.group_id')
        .innerJoin('users', 'users.id', 'group_members.user_id')
        .where('users.name', '=', normaliseUserName(userName))
        .select(['groups.name', 'group_members.origin'])
        .orderBy('groups.name')
        .execute(),
  };
}
