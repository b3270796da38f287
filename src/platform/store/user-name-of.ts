import type { Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** The name of a user, by id; undefined where there is none. */
export async function userNameOf(on: Kysely<Tables>, id: string): Promise<string | undefined> {
  const user = await on.selectFrom('users').select('name').where('id', '=', id).executeTakeFirst();
  return user?.name;
}
