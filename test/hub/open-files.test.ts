import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createHubFolder, startHubProcess } from '../support/hub-process.ts';
import { requires } from '../support/requires.ts';
import { adminToken } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

const complaint = /limit of \d+ open files/;

test.skipIf(!requires('prlimit'))(
  'clients that take all connections leave some to servers and services, and are told',
  async () => {
    await using folder = await createHubFolder({ Proxy: { max_connections: 20_000 } });
    await using hub = await startHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
      openFiles: 256,
    });
    expect(hub.logged(complaint)).toMatchObject([
      { level: 'warn', msg: expect.stringContaining('LimitNOFILE') },
    ]);

    const { port } = new URL(folder.url);
    const clients: Socket[] = [];
    let refused = 0;
    for (let index = 0; index < 400; index += 1) {
      const client = connect(Number(port), '127.0.0.1');
      client.on('error', () => {});
      client.once('close', () => {
        refused += 1;
      });
      clients.push(client);
      await Promise.race([once(client, 'connect'), once(client, 'close')]);
    }
    try {
      // What is not refused waits for its first request.
      await until(() => refused >= 200, 'clients beyond the limit are refused');
      for (let index = 0; index < 5; index += 1) {
        const answer = await fetch(`${folder.apiUrl}/users/user-${index}`, {
          method: 'POST',
          headers: { authorization: `token ${adminToken}`, connection: 'close' },
          signal: AbortSignal.timeout(20_000),
        });
        expect(answer.status).toBe(201);
      }
      await expect
        .poll(async () => await firstAnswerOf(Number(port)))
        .toMatch(/^HTTP\/1.1 503 [\s\S]*too many connections/);
    } finally {
      for (const client of clients) client.destroy();
    }
    await until(
      async () => (await fetch(`${folder.url}hub/health`)).status === 200,
      'there is room for clients again',
    );
  },
);

test.skipIf(!requires('prlimit') || !requires('perl'))(
  'what the servers of users hold open is not left to clients',
  async () => {
    await using folder = await createHubFolder({
      Hub: { cleanup_servers: true },
      Spawner: { cmd: trivialApp(), access: 'gateway' },
    });
    await using hub = await startHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
      openFiles: 256,
    });
    const headers = { authorization: `token ${adminToken}` };
    for (let index = 0; index < 12; index += 1) {
      const user = `${folder.apiUrl}/users/user-${index}`;
      await fetch(user, { method: 'POST', headers });
      expect((await fetch(`${user}/server`, { method: 'POST', headers })).status).toBe(201);
    }
    const { port } = new URL(folder.url);
    const clients: Socket[] = [];
    let accepted = 0;
    for (let index = 0; index < 120; index += 1) {
      const client = connect(Number(port), '127.0.0.1');
      clients.push(client);
      client.on('error', () => {});
      client.write('GET /hub/health HTTP/1.1\r\nHost: hub\r\n\r\n');
      const [answer] = await Promise.race([once(client, 'data'), once(client, 'close')]);
      if (String(answer).startsWith('HTTP/1.1 200')) accepted += 1;
    }
    for (const client of clients) client.destroy();
    // 256 files less two of each server, a third of that in reserve, and two for each client.
    expect(accepted).toBeLessThanOrEqual(77);
    expect(accepted).toBeGreaterThan(60);
    hub.signal('SIGTERM');
    expect(await hub.exited).toBe(0);
  },
);

async function firstAnswerOf(port: number): Promise<string> {
  const client = connect(port, '127.0.0.1');
  client.on('error', () => {});
  let text = '';
  client.on('data', (data) => {
    text += String(data);
  });
  client.end('GET /hub/health HTTP/1.1\r\nHost: hub\r\n\r\n');
  await once(client, 'close');
  return text;
}

test.skipIf(!requires('prlimit')).each([
  ['with enough of them', { max_connections: 100 }],
  ['that may choose how many connections it takes', {}],
])('a hub %s says nothing of open files', async (_, proxy) => {
  await using folder = await createHubFolder({ Proxy: proxy });
  await using hub = await startHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    openFiles: 2_000,
  });
  expect(hub.logged(complaint)).toEqual([]);
});
