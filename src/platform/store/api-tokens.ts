import type { Kysely } from 'kysely';
import { countOf } from './queries.ts';
import type { Tables } from './tables.ts';

/** The tokens of a user that work and were made by hand or by the API, not for a server or an application. */
export function apiTokensOf(kysely: Kysely<Tables>, userId: string, now: number) {
  return kysely
    .selectFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('client_id', 'is', null)
    .where('server_id', 'is', null)
    .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', now)]));
}

/** How many those are. */
export function countApiTokens(
  kysely: Kysely<Tables>,
  userId: string,
  now: number,
): Promise<number> {
  return countOf(apiTokensOf(kysely, userId, now));
}
