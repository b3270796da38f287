import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { fixtureApp, isAlive } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
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

  test('start nothing any more when they were held up until another one has done so', async () => {
    const cookie_secret = randomBytes(32).toString('hex');
    const database_url = await cluster().createDatabase();
    const Hub = { database_url, cookie_secret };
    await using slow = await createHubFolder();
    await using heir = await createHubFolder();
    const [runs, goOn] = [join(slow.directory, 'runs'), join(slow.directory, 'go-on')];
    const cmd = ['sh', '-c', `echo $$ >>${runs}; exec "$0" "$@"`, ...fixtureApp('web-server')];
    const plugins_dir = await writeHook(slow.directory, goOn);
    const patience = { hook_timeout: 300, start_timeout: 300 };
    const Spawner = { cmd, hooks: ['holds'], ...patience };
    await slow.configure({ Hub: { ...Hub, plugins_dir }, Spawner });
    await heir.configure({ Hub, Spawner: { cmd } });
    await using heldUp = await slow.start();
    await heir.start();
    await ask(slow, '/users/ada', 'POST');
    void ask(slow, '/users/ada/server', 'POST').catch(() => undefined);
    await until(() => heldUp.logged(/the hook holds/).length > 0, 'the start is under way');
    heldUp.signal('SIGSTOP');
    const model = async () =>
      (await (await ask(heir, '/users/ada/server')).json()) as Record<string, unknown>;
    await until(async () => (await model())['stopped'] === true, 'the other hub has noticed');
    await ask(heir, '/users/ada/server', 'POST');
    await until(async () => (await model())['ready'] === true, 'the other hub has started it');
    await writeFile(goOn, '');
    heldUp.signal('SIGCONT');
    const given = /^server start (?:failed|cancelled)$/;
    await until(() => heldUp.logged(given).length > 0, 'the start is given up');
    expect(await model()).toMatchObject({ ready: true, failure: null });
    const [pid, ...others] = (await readFile(runs, 'utf8')).trim().split('\n');
    expect(others).toEqual([]);
    expect(isAlive(Number(pid))).toBe(true);
    await ask(heir, '/users/ada/server', 'DELETE');
  });
});

/** Writes a plugin, a hook that holds a start until a file is there; gives its folder. */
async function writeHook(directory: string, file: string): Promise<string> {
  const folder = join(directory, 'plugins');
  await mkdir(folder);
  await writeFile(
    join(folder, 'holds.ts'),
    `import { existsSync } from 'node:fs';
     import { setTimeout } from 'node:timers/promises';
     import { z } from ${JSON.stringify(join(projectDirectory, 'node_modules', 'zod', 'index.js'))};
     export default {
       kind: 'spawn-hook',
       name: 'holds',
       section: 'Holds',
       optionsSchema: z.strictObject({}),
       create: (options, { log }) => ({
         async beforeStart() {
           log.info({}, 'the hook holds');
           while (!existsSync(${JSON.stringify(file)})) await setTimeout(10);
         },
       }),
     };`,
  );
  return folder;
}

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
