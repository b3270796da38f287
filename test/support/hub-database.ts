import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { TestHub } from './test-hub.ts';

/**
 * Changes the SQLite database of a hub of this process behind its back, in one transaction.
 *
 * While the hub writes itself, the event loop goes on: the hub's transaction needs it to come to its end.
 */
export async function changeDatabase(
  hub: Pick<TestHub, 'directory'>,
  change: (database: DatabaseSync) => unknown,
): Promise<void> {
  using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'), { timeout: 0 });
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      database.exec('begin immediate');
      break;
    } catch (error) {
      if (Date.now() > end || !String(error).includes('locked')) throw error;
      await pause(5);
    }
  }
  change(database);
  database.exec('commit');
}
