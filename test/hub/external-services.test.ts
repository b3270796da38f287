import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { createTestHub } from '../support/test-hub.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

/** An app of its own, which answers the first question after some time, or never. */
async function startApp(firstAnswer: Promise<void>): Promise<string> {
  let isFirst = true;
  const server = createServer((_request, response) => {
    const turn = isFirst ? firstAnswer : Promise.resolve();
    isFirst = false;
    void turn.then(() => response.end('the app'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.push({
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const service = async (name: string, firstAnswer: Promise<void>) => ({
  name,
  url: await startApp(firstAnswer),
  access: 'public',
});

describe('the external services of a hub that has just started', () => {
  test('are open where they run, at a restart too', async () => {
    const services = [await service('app', new Promise((resolve) => setTimeout(resolve, 100)))];
    const first = await createTestHub({ Hub: { services } });
    opened.push(first);
    expect((await fetch(`${first.url}services/app/`)).status).toBe(200);
    const second = await first.restart();
    opened.push(second);
    expect((await fetch(`${second.url}services/app/`)).status).toBe(200);
  });

  test('tell an administrator how long their last answer took', async () => {
    const services = [
      await service('app', Promise.resolve()),
      await service('hangs', new Promise(() => undefined)),
    ];
    const hub = await createPasswordHub(['eve'], {
      Hub: { services },
      Authenticator: { admin_users: ['eve'] },
    });
    opened.push(hub);
    const admin = await hub.logIn('eve', testPassword);
    const page = async (path: string) =>
      (await admin.request(`${hub.url}hub/admin/services${path}`)).body;
    expect(await page('/app')).toMatch(/<dt>Response time<\/dt><dd>[\d.]+ ms</);
    expect(await page('/hangs')).not.toContain('Response time');
    expect((await page('')).match(/Answers in [\d.]+ ms/g)).toHaveLength(1);
  });

  test('do not keep it from starting when one of them gives no answer', async () => {
    const services = [
      await service('app', Promise.resolve()),
      await service('hangs', new Promise(() => undefined)),
    ];
    const hub = await createTestHub({ Hub: { services } });
    opened.push(hub);
    expect((await fetch(`${hub.url}services/app/`)).status).toBe(200);
    expect((await fetch(`${hub.url}services/hangs/`)).status).toBe(503);
  });
});
