import { type ExpressionBuilder, sql } from 'kysely';
import type { HubDatabase } from '../store/database.ts';
import { textsOf } from '../store/json-list.ts';
import { leaseHasEnded } from '../store/lease-clock.ts';
import type { Tables } from '../store/tables.ts';
import { searchForm } from './user-info.ts';

export interface UserFilters {
  /** Part of the name, in either case of ASCII letters. */
  readonly nameFilter?: string;
  /**
   * The users whose display name and e-mail address `nameFilter` is looked for in too, in either case of all
   * letters; none unless given.
   */
  readonly searchesInfoOf?: 'all' | readonly string[];
  /**
   * By their servers: `active` has one that is not stopped, `ready` has one that runs and is not
   * unreachable, `inactive` has none that is not stopped.
   */
  readonly serverState?: 'active' | 'ready' | 'inactive';
}

/** Whose name, or display name or e-mail address, has this in it. */
export function matches(
  where: ExpressionBuilder<Tables, 'users'>,
  nameFilter: string,
  { searchesInfoOf }: Pick<UserFilters, 'searchesInfoOf'>,
  database: Pick<HubDatabase, 'dialect'>,
) {
  // The databases' own lower() knows ASCII letters only.
  const text = nameFilter.normalize('NFC');
  const lowerCase = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  const hasName = sql<boolean>`lower(users.name) like ${containing(lowerCase)} escape '\\'`;
  if (searchesInfoOf === undefined) return hasName;
  const found = where
    .selectFrom('user_info')
    .select('user_info.user_id')
    .where(sql<boolean>`user_info.search_text like ${containing(searchForm(text))} escape '\\'`);
  const hasInfo = where('users.id', 'in', found);
  if (searchesInfoOf === 'all') return where.or([hasName, hasInfo]);
  const isSearched = where('users.name', 'in', textsOf(searchesInfoOf, database));
  return where.or([hasName, where.and([isSearched, hasInfo])]);
}

/** A LIKE pattern for any place in a text. */
function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}

/** Whose servers are in this state. */
export function inState(
  where: ExpressionBuilder<Tables, 'users'>,
  state: NonNullable<UserFilters['serverState']>,
  database: Pick<HubDatabase, 'dialect'>,
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
