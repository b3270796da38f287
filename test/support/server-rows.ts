import type { HubDatabase } from '../../src/platform/store/database.ts';

/** Enters the default server of a user. */
export async function addServer(
  { kysely }: HubDatabase,
  userId: string,
  state: string,
  instanceId: string | null = null,
) {
  await kysely
    .insertInto('servers')
    .values({
      id: `server-${userId}`,
      user_id: userId,
      name: '',
      display_name: null,
      state,
      url: null,
      spawner_state: '{}',
      user_options: '{}',
      failure: null,
      created_at: 1,
      started_at: null,
      last_activity_at: null,
      instance_id: instanceId,
    })
    .execute();
}
