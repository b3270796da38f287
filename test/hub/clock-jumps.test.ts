import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFakeClock } from '../support/fake-clock.ts';
import { createHubFolder, startHubProcess } from '../support/hub-process.ts';
import { requires } from '../support/requires.ts';
import { until } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

/** Becomes ready only when the file `go` is there, or does not mind SIGTERM, depending on whose it is. */
function program(directory: string): string[] {
  const script = `case $HUB_USER in
    late) while [ ! -e ${directory}/go ]; do sleep 0.1; done ;;
    stubborn) trap '' TERM ;;
  esac
  exec ${trivialApp().join(' ')}`;
  return ['sh', '-c', script];
}

test.skipIf(!requires('faketime')).for([
  ['back', -3_600],
  ['forward', 3_600],
] as const)(
  'servers start and stop, and the hub ends, when the clock is set %s by an hour',
  async ([, seconds]) => {
    await using folder = await createHubFolder();
    const clock = await createFakeClock(folder.directory);
    await folder.configure({
      Hub: { cleanup_servers: true, services: [{ name: 'managed', command: ['sleep', '1000'] }] },
      Spawner: {
        cmd: program(folder.directory),
        access: 'gateway',
        slow_start_timeout: 0.1,
        slow_stop_timeout: 0.1,
        stop_timeout: 2,
        idle_timeout_seconds: 600,
        max_age_seconds: 1200,
      },
    });
    await using hub = await startHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
      env: clock.env,
    });
    const api = (path: string, method = 'GET') =>
      fetch(folder.apiUrl + path, {
        method,
        headers: { authorization: 'token admin-service-token' },
      });
    const server = async (name: string) =>
      (await (await api(`/users/${name}/server`)).json()) as {
        ready: boolean;
        stopped: boolean;
        stops_at: string | null;
      };
    const secondsLeft = async (name: string): Promise<number> => {
      const { stops_at: at } = await server(name);
      const now = Date.parse((await api('/info')).headers.get('date') ?? '');
      return at === null ? Number.NaN : (Date.parse(at) - now) / 1000;
    };
    const untilReady = (name: string) =>
      until(async () => (await server(name)).ready, `the server of ${name} is ready`);
    const untilStopped = (name: string) =>
      until(async () => (await server(name)).stopped, `the server of ${name} is stopped`);
    async function start(name: string): Promise<void> {
      expect((await api(`/users/${name}`, 'POST')).status).toBe(201);
      expect([201, 202]).toContain((await api(`/users/${name}/server`, 'POST')).status);
    }

    for (const name of ['early', 'stubborn', 'late']) await start(name);
    for (const name of ['early', 'stubborn']) await untilReady(name);
    await until(async () => (await secondsLeft('early')) > 0, 'the limits are known');
    expect((await api('/users/stubborn/server', 'DELETE')).status).toBe(202);

    await clock.set(seconds);
    await until(async () => {
      const aheadMs = Date.parse((await api('/info')).headers.get('date') ?? '') - Date.now();
      return Math.abs(aheadMs - seconds * 1000) < 60_000;
    }, 'the hub sees the new time');

    // The limits of its time go on, as if the clock had always stood like that.
    await until(async () => {
      const left = await secondsLeft('early');
      return left > 0 && left <= 605;
    }, 'the hub counts the time of the server from the new time');

    await writeFile(join(folder.directory, 'go'), '');
    await untilReady('late');
    await untilStopped('stubborn');
    await start('fresh');
    await untilReady('fresh');
    for (const name of ['early', 'late']) {
      expect([202, 204]).toContain((await api(`/users/${name}/server`, 'DELETE')).status);
      await untilStopped(name);
    }

    hub.signal('SIGTERM');
    let code: number | null | undefined;
    void hub.exited.then((exitCode) => {
      code = exitCode;
    });
    await until(() => code !== undefined, 'the hub ends');
    expect(code).toBe(0);
    expect(hub.logged(/did not stop in time/)).toEqual([]);
  },
);
