import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { isAlive } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

const headers = { authorization: 'token admin-service-token', 'content-type': 'application/json' };

const ask = (hub: HubFolder, path: string, method = 'GET') =>
  fetch(hub.apiUrl + path, { method, headers });

describe.skipIf(!hasPostgres())('several hubs on one machine', () => {
  const cluster = usePostgres();

  test('end what one of them was about to start when it was killed', async () => {
    const cookie_secret = randomBytes(32).toString('hex');
    const database_url = await cluster().createDatabase();
    const config = (instance_name: string) => ({
      Hub: { database_url, instance_name, cookie_secret },
      // It never listens, and is known to no database before it does.
      Spawner: { cmd: ['sleep', '1000'], http_timeout: 300, start_timeout: 300 },
    });
    await using dying = await createHubFolder(config('dying'));
    await using heir = await createHubFolder(config('heir'));
    const killed = await dying.start();
    await heir.start();
    await ask(dying, '/users/ada', 'POST');
    void ask(dying, '/users/ada/server', 'POST').catch(() => undefined);
    const model = async () =>
      (await (await ask(heir, '/users/ada/server')).json()) as { stopped: boolean; id?: string };
    let pids: readonly number[] = [];
    await until(() => {
      pids = processesOf(dying.directory, 'sleep');
      return pids.length > 0;
    }, 'the program of the server runs');
    killed.signal('SIGKILL');
    await killed.exited;
    await until(async () => (await model()).stopped, 'the other hub has noticed');
    await until(() => !pids.some(isAlive), 'nothing is left of the start');
    expect((await ask(heir, '/users/ada/server')).status).toBe(200);
  });
});

/** Processes that work in a folder and have a name. */
function processesOf(directory: string, name: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
        return command === name && readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
      } catch {
        return false;
      }
    });
}
