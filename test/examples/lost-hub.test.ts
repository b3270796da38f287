import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  isAlive,
  serverPath,
  startServer,
  untilServer,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { testCookieSecret, until } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

const page = readFileSync(join(projectDirectory, 'docs/how-to/run-several-hubs.md'), 'utf8');

/** The messages of the page's logs; what differs from run to run is left out. */
const [farLog = [], nearLog = []] = [...page.matchAll(/^```text\n(.*?)^```$/gms)].map(
  ([, text = '']) =>
    text
      .trim()
      .split('\n')
      .map((line) => plain(/^\S+ [A-Z]+: (?:\[\w+\] )?(.*?)(?: \{.*\})?$/.exec(line)?.[1] ?? line)),
);

function plain(message: string): string {
  return message.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, 'TIME');
}

describe.skipIf(!hasPostgres())('the page about several hubs', () => {
  const cluster = usePostgres();

  test.each([
    ['on another machine', 'another machine', farLog],
    ['on the same machine', undefined, nearLog],
  ])('shows what is logged when a hub is killed %s', async (_where, machineId, wanted) => {
    expect(wanted.length).toBeGreaterThan(4);
    const port = await freePort();
    const Hub = {
      database_url: await cluster().createDatabase(),
      cookie_secret: testCookieSecret,
      services: [
        {
          name: 'whoami',
          url: `http://127.0.0.1:${port}`,
          command: trivialApp(),
        },
      ],
    };
    const Spawner = { cmd: fixtureApp('web-server'), access: 'gateway' };
    await using folder = await createHubFolder({
      // Where no machine is (RFC 5737): a loopback address would not be asked from another one.
      Hub: { ...Hub, instance_name: 'hub-a', instance_url: 'http://192.0.2.1:8080' },
      Spawner,
    });
    await using dying = await folder.start();
    await until(() => dying.logged(/^service is ready/).length > 0, 'the service is ready');
    await using hub = await createServerHub(
      { Hub: { ...Hub, instance_name: 'hub-b' }, Spawner },
      machineId === undefined ? {} : { machineId },
    );
    await createUsers(hub, 'ada');
    const headers = { authorization: `token ${adminToken}` };
    await fetch(`${folder.apiUrl}/users/ada/server`, { method: 'POST', headers });
    const { state } = await untilServer(
      hub,
      serverPath('ada'),
      ({ ready }) => ready,
      'it is ready',
    );
    const begun = hub.logLines.length;

    dying.signal('SIGKILL');
    await dying.exited;
    if (machineId !== undefined) {
      // The whole machine is lost.
      const [service] = dying.logged(/^service started$/);
      for (const pid of [Number(service?.['servicePid']), Number(state?.['pid'])]) {
        process.kill(-pid, 'SIGKILL');
        await until(() => !isAlive(pid), `${pid} has ended`);
      }
      await hub.api('/instances', adminToken);
    }
    const messages = () => hub.logLines.slice(begun).map(({ msg }) => plain(String(msg)));
    await until(
      () => wanted.every((message) => messages().includes(message)),
      `the log has all of it: ${wanted.join(' | ')}`,
    );
    if (machineId === undefined) await hub.api(serverPath('ada'), adminToken, { method: 'DELETE' });
    else expect((await startServer(hub, serverPath('ada'))).status).toBe(409);
  });
});
