import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { createGroupStore } from '../../src/identity/users/group-store.ts';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { databaseFile } from '../api/hub.ts';

/** The group of every other user. */
export const largeGroup = 'everyone-of-the-first-year';

/**
 * Fills the database of a hub as that of a university: every second user has logged in, one in twenty has a
 * server that failed, all are in a group, and half of them in the large one.
 */
export async function fillHub(
  directory: string,
  {
    userNames,
    groupCount,
    databaseUrl = `sqlite:${databaseFile}`,
  }: {
    readonly userNames: readonly string[];
    readonly groupCount: number;
    readonly databaseUrl?: string;
  },
): Promise<void> {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(databaseUrl, { directory, log });
  const users = createUserStore(database);
  const groups = createGroupStore(database);
  const chunk = 1_000;
  const names = Array.from(
    { length: groupCount },
    (_, index) => `course-${String(index).padStart(4, '0')}`,
  );
  const courses = await groups.createAll({ names, memberNames: [], origin: 'api' });
  const groupIds = courses.map(({ id }) => id);
  const [large] = await groups.createAll({ names: [largeGroup], memberNames: [], origin: 'api' });
  if (large === undefined) throw new Error('the large group was not made');
  for (let start = 0; start < userNames.length; start += chunk) {
    const made = await users.createMissing(userNames.slice(start, start + chunk));
    const active = made.filter((_, index) => index % 2 === 0);
    const seen = (index: number) => new Date(Date.UTC(2026, 0, 1) + (start + index) * 60_000);
    await users.recordActivity(new Map(active.map(({ id }, index) => [id, seen(index)])));
    const members = made.flatMap(({ id }, index) => [
      { group_id: groupIds[(start + index) % groupCount] ?? '', user_id: id, origin: 'api' },
      ...(index % 2 === 0 ? [{ group_id: large.id, user_id: id, origin: 'api' }] : []),
    ]);
    const servers = made
      .filter((_, index) => index % 20 === 0)
      .map(({ id }) => ({
        id: randomUUID(),
        user_id: id,
        name: '',
        state: 'stopped',
        spawner_state: '{}',
        user_options: '{}',
        failure: JSON.stringify({ message: 'It ended.', at: new Date(0), output: [] }),
        created_at: 1,
      }));
    await database.transaction(async (transaction) => {
      await transaction.insertInto('group_members').values(members).execute();
      await transaction.insertInto('servers').values(servers).execute();
    });
  }
}
