import { type HubDatabase, manyRows } from '../../platform/store/database.ts';
import { type ListPage, type PageAsked, readPage } from '../../platform/store/page-edge.ts';
import { countOf, hasInIt, textsOf } from '../../platform/store/queries.ts';
import { normaliseUserName } from './user-name.ts';

/** One page of a list that can be long; the keys of its edges are names. */
interface PageOptions extends PageAsked {
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
  ): Promise<ListPage<ListedGroup>>;
  /** Members by the order of their names. */
  listMembers(groupId: string, options: PageOptions): Promise<ListPage<Membership>>;
  /** The groups of a user, in the order of their names. */
  membershipsOf(userName: string): Promise<Membership[]>;
}

/** A group with more than one of so many users is a large one. */
const maxShare = 20;

export function createGroupPages(
  database: Pick<HubDatabase, 'kysely' | 'longReads' | 'dialect'>,
  {
    smallGroup = 2_000,
  }: { /** Members that are sorted in no time. */ readonly smallGroup?: number } = {},
): GroupPages {
  const { kysely } = database;
  /** Whether it has more than one of so many users. */
  async function isLargeGroup(memberCount: number): Promise<boolean> {
    if (memberCount < smallGroup) return false;
    return memberCount * maxShare > (await countOf(kysely.selectFrom('users')));
  }

  return {
    async listGroups({ nameFilter = '', onlyNames, ...asked }) {
      let query = kysely.selectFrom('groups');
      if (onlyNames !== undefined) query = query.where('name', 'in', textsOf(onlyNames, database));
      if (nameFilter !== '') query = query.where(hasInIt('groups.name', nameFilter));
      const total = await countOf(query);
      const rows = query.select(['groups.name', 'groups.origin']).select((select) =>
        select
          .selectFrom('group_members')
          .whereRef('group_members.group_id', '=', 'groups.id')
          .select((of) => of.fn.countAll<number>().as('count'))
          .as('memberCount'),
      );
      const page = await readPage(asked, total, {
        placeOf: (key) => key,
        read: ({ isBackwards, place, limit }) =>
          (place === undefined ? rows : rows.where('groups.name', isBackwards ? '<' : '>', place))
            .orderBy('groups.name', isBackwards ? 'desc' : 'asc')
            .limit(limit)
            .execute(),
      });
      const items = page.items.map((row) => ({ ...row, memberCount: Number(row.memberCount) }));
      return { ...page, items };
    },

    async listMembers(groupId, { nameFilter = '', ...asked }) {
      const ofGroup = kysely.selectFrom('group_members').where('group_id', '=', groupId);
      const memberCount = await countOf(ofGroup);
      // SQLite keeps to the order of a cross join. The members of a large group are met soon among all users, in
      // the order of their names; those of a small one are looked up and sorted.
      const reads = memberCount < manyRows ? kysely : database.longReads;
      const all = (await isLargeGroup(memberCount))
        ? reads.selectFrom('users').crossJoin('group_members')
        : reads.selectFrom('group_members').crossJoin('users');
      let query = all
        .whereRef('group_members.user_id', '=', 'users.id')
        .where('group_members.group_id', '=', groupId);
      if (nameFilter !== '') query = query.where(hasInIt('users.name', nameFilter));
      const total = nameFilter === '' ? memberCount : await countOf(query);
      const rows = query.select(['users.name', 'group_members.origin']);
      return readPage(asked, total, {
        placeOf: (key) => key,
        read: ({ isBackwards, place, limit }) =>
          (place === undefined ? rows : rows.where('users.name', isBackwards ? '<' : '>', place))
            .orderBy('users.name', isBackwards ? 'desc' : 'asc')
            .limit(limit)
            .execute(),
      });
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
