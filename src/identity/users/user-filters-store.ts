import { type ExpressionBuilder, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { leaseHasEnded } from '../../platform/store/lease-clock.ts';
import { containing, hasInIt, textsOf } from '../../platform/store/queries.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { searchForm } from './user-info.ts';

/** What users can be asked for in groups: by any server of theirs, or by themselves. */
export const userStatuses = [
  'running',
  'starting',
  'failed',
  'never_active',
  'administrator',
  'suspended',
  'invited',
  'invitation_expiring',
  'invitation_expired',
] as const;
export type UserStatus = (typeof userStatuses)[number];

/** Narrows a list of users; everything given must match. */
export interface UserFilter {
  /** Part of the name, in either case of ASCII letters. */
  readonly nameFilter?: string | undefined;
  /**
   * The users whose display name and e-mail address `nameFilter` is looked for in too, in either case of all
   * letters; none unless given.
   */
  readonly searchesInfoOf?: 'all' | readonly string[] | undefined;
  /** Leaves out all other users. */
  readonly onlyNames?: readonly string[] | undefined;
  /** Members of this group. */
  readonly groupName?: string | undefined;
  readonly status?: UserStatus | undefined;
  /**
   * By their servers: `active` has one that is not stopped, `ready` has one that runs and is not
   * unreachable, `inactive` has none that is not stopped.
   */
  readonly serverState?: 'active' | 'ready' | 'inactive' | undefined;
}

/** How many users a filter finds, and how many of them have each mark. */
export type UserCounts = Readonly<Record<UserStatus | 'all', number>>;

/** An invitation that is not used within it expires soon. */
const expiringMs = 2 * 86_400_000;

type Dialect = Pick<HubDatabase, 'dialect' | 'now'>;

/** Whether a filter leaves no one out. */
export function findsAll({ nameFilter, onlyNames, groupName, status, serverState }: UserFilter) {
  return !nameFilter && (onlyNames ?? groupName ?? status ?? serverState) === undefined;
}

/** Conditions to check for each user by a correlated subquery: faster than to gather all who meet them, where many do. */
interface Correlated {
  readonly status?: boolean;
  readonly group?: boolean;
}

/** Adds the conditions of a filter to a query of users. */
export function filterUsers<Output>(
  query: SelectQueryBuilder<Tables, 'users', Output>,
  filter: UserFilter,
  database: Dialect,
  correlated: Correlated = {},
): SelectQueryBuilder<Tables, 'users', Output> {
  const { nameFilter, onlyNames, groupName, status, serverState } = filter;
  let filtered = query;
  if (status !== undefined)
    filtered = filtered.where((where) => hasStatus(where, status, database, correlated.status));
  if (groupName !== undefined) {
    filtered = filtered.where((where) => isIn(where, groupName, correlated.group));
  }
  if (onlyNames !== undefined) {
    filtered = filtered.where('users.name', 'in', textsOf(onlyNames, database));
  }
  if (serverState !== undefined) {
    filtered = filtered.where((where) => inState(where, serverState, database));
  }
  if (nameFilter !== undefined && nameFilter !== '') {
    filtered = filtered.where((where) => matches(where, nameFilter, filter, database));
  }
  return filtered;
}

/** Counts in one query; the `status` of the filter does not count. */
export async function countUsers(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>,
  filter: Omit<UserFilter, 'status'>,
): Promise<UserCounts> {
  const { nameFilter, onlyNames, serverState } = filter;
  const looksAtEach = Boolean(nameFilter) || (onlyNames ?? serverState) !== undefined;
  const query = looksAtEach ? countInOnePass(database, filter) : countByIndexes(database, filter);
  const counts = await query.executeTakeFirstOrThrow();
  const entries = Object.entries(counts).map(([status, count]) => [status, Number(count)]);
  return Object.fromEntries(entries) as UserCounts;
}

/** Where each user is to be looked at, they are looked at once for all counts. */
function countInOnePass(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>,
  filter: Omit<UserFilter, 'status'>,
) {
  return filterUsers(database.kysely.selectFrom('users'), filter, database).select((of) => [
    of.fn.countAll<number>().as('all'),
    ...userStatuses.map((status) =>
      of.fn
        .countAll<number>()
        .filterWhere((where) => hasStatus(where, status, database))
        .as(status),
    ),
  ]);
}

/** Of all users or the members of a group, without looking at one who is not counted. */
function countByIndexes(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>,
  { groupName }: Pick<UserFilter, 'groupName'>,
) {
  const { kysely } = database;
  return kysely.selectNoFrom((select) =>
    ([undefined, ...userStatuses] as const).map((status) => {
      // All members may be of these two kinds; of the others few users are, who are looked up in the group.
      if (groupName !== undefined && (status === undefined || status === 'never_active')) {
        return countMembers(database, groupName, status).as(status ?? 'all');
      }
      return filterUsers(select.selectFrom('users'), { groupName, status }, database, {
        group: true,
      })
        .select((of) => of.fn.countAll<number>().as('count'))
        .as(status ?? 'all');
    }),
  );
}

function countMembers(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'now'>,
  groupName: string,
  status: UserStatus | undefined,
) {
  const { kysely } = database;
  const members = kysely
    .selectFrom('group_members')
    .select((of) => of.fn.countAll<number>().as('count'))
    .where('group_members.group_id', '=', (of) => groupIdOf(of, groupName));
  if (status === undefined) return members;
  return members.where((where) =>
    where.exists(
      kysely
        .selectFrom('users')
        .select('users.id')
        .where(sql<boolean>`users.id = group_members.user_id`)
        .where((user) => hasStatus(user, status, database)),
    ),
  );
}

// The values stand in the statements themselves, so that databases know which indexes hold these rows.
function hasStatus(
  where: ExpressionBuilder<Tables, 'users'>,
  status: UserStatus,
  database: Dialect,
  isCorrelated = false,
) {
  switch (status) {
    case 'running':
      return hasServer(where, sql<boolean>`servers.state = 'running'`, isCorrelated);
    case 'starting':
      return hasServer(where, sql<boolean>`servers.state = 'starting'`, isCorrelated);
    case 'failed': {
      const isFailed = sql<boolean>`servers.state = 'stopped' and servers.failure is not null`;
      return hasServer(where, isFailed, isCorrelated);
    }
    case 'never_active':
      return where('users.last_activity_at', 'is', null);
    case 'administrator':
      return sql<boolean>`users.admin = 1`;
    case 'suspended':
      return where('users.suspended_at', 'is not', null);
    case 'invited':
      return hasInvitation(where, sql<boolean>`expires_at > ${database.now()}`);
    case 'invitation_expiring': {
      const now = database.now();
      return hasInvitation(
        where,
        sql<boolean>`expires_at > ${now} and expires_at <= ${now + expiringMs}`,
      );
    }
    case 'invitation_expired':
      // Those who came in another way need no link.
      return where.and([
        hasInvitation(where, sql<boolean>`expires_at <= ${database.now()}`),
        where('users.last_activity_at', 'is', null),
      ]);
  }
}

function hasInvitation(where: ExpressionBuilder<Tables, 'users'>, condition: RawBuilder<boolean>) {
  const invited = where
    .selectFrom('invitations')
    .select('invitations.user_id')
    .where(sql<boolean>`purpose = 'invitation' and used_at is null`)
    .where(condition);
  return where('users.id', 'in', invited);
}

function hasServer(
  where: ExpressionBuilder<Tables, 'users'>,
  condition: RawBuilder<boolean>,
  isCorrelated: boolean,
) {
  const owners = where.selectFrom('servers').select('servers.user_id').where(condition);
  return isCorrelated
    ? where.exists(owners.whereRef('servers.user_id', '=', 'users.id'))
    : where('users.id', 'in', owners);
}

function groupIdOf(
  { selectFrom }: Pick<ExpressionBuilder<Tables, 'group_members'>, 'selectFrom'>,
  groupName: string,
) {
  return selectFrom('groups')
    .select('groups.id')
    .where('groups.name', '=', groupName.normalize('NFC'));
}

function isIn(where: ExpressionBuilder<Tables, 'users'>, groupName: string, isCorrelated = false) {
  const memberships = where
    .selectFrom('group_members')
    .select('group_members.user_id')
    .where('group_members.group_id', '=', (of) => groupIdOf(of, groupName));
  return isCorrelated
    ? where.exists(memberships.whereRef('group_members.user_id', '=', 'users.id'))
    : where('users.id', 'in', memberships);
}

function inState(
  where: ExpressionBuilder<Tables, 'users'>,
  state: NonNullable<UserFilter['serverState']>,
  database: Dialect,
) {
  const servers = where
    .selectFrom('servers')
    .select('servers.id')
    .whereRef('servers.user_id', '=', 'users.id');
  const isActive = where.exists(servers.where('servers.state', '!=', 'stopped'));
  if (state === 'active') return isActive;
  if (state === 'inactive') return where.not(isActive);
  const isReachable = sql<boolean>`not ${leaseHasEnded(database, 'servers.instance_id')}`;
  return where.exists(servers.where('servers.state', '=', 'running').where(isReachable));
}

/** Whose name, or display name or e-mail address, has this in it. */
function matches(
  where: ExpressionBuilder<Tables, 'users'>,
  nameFilter: string,
  { searchesInfoOf }: Pick<UserFilter, 'searchesInfoOf'>,
  database: Dialect,
) {
  const hasName = hasInIt('users.name', nameFilter);
  if (searchesInfoOf === undefined) return hasName;
  const found = where
    .selectFrom('user_info')
    .select('user_info.user_id')
    .where(
      sql<boolean>`user_info.search_text like ${containing(searchForm(nameFilter.normalize('NFC')))} escape '\\'`,
    );
  const hasInfo = where('users.id', 'in', found);
  if (searchesInfoOf === 'all') return where.or([hasName, hasInfo]);
  const isSearched = where('users.name', 'in', textsOf(searchesInfoOf, database));
  return where.or([hasName, where.and([isSearched, hasInfo])]);
}
