import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, submitForm, until } from '../support/test-hub.ts';

const project = join(import.meta.dirname, '..', '..');
const usersOpenServices = [{ name: 'user', scopes: ['self', 'access:services'] }];

describe.skipIf(!hasPostgres() || !hasRedis())('a hub on PostgreSQL and Redis', () => {
  const cluster = usePostgres();
  const redis = useRedis();

  async function storage() {
    return { database_url: await cluster().createDatabase(), keyv_url: redis().url };
  }

  test('leads a person through login and consent to a service, and logs out again', async () => {
    const port = await freePort();
    await using hub = await createTestHub({
      Hub: {
        ...(await storage()),
        load_roles: usersOpenServices,
        services: [
          {
            name: 'whoami',
            url: `http://127.0.0.1:${port}`,
            command: [process.execPath, join(project, 'examples/whoami/whoami.ts')],
          },
        ],
      },
    });
    await untilState(hub, 'whoami', 'ready');

    const browser = await hub.logIn('alice');
    const consent = await browser.open(`${hub.url}services/whoami/`);
    await submitForm(browser, consent, { decision: 'allow' });
    expect((await browser.open(`${hub.url}services/whoami/`)).body).toContain('alice');

    await browser.request(`${hub.url}hub/logout`);
    const after = await browser.request(`${hub.url}services/whoami/`);
    expect(after.status).toBe(302);
  });

  test('a login at one process is a login at the other, and ends at both at once', async () => {
    const shared = await storage();
    await using first = await createTestHub({ Hub: shared });
    await using second = await createTestHub({ Hub: shared });

    const browser = await first.logIn('alice');
    expect((await browser.request(`${first.url}hub/home`)).status).toBe(200);
    // Cookies know no ports: the same ones go to the second process.
    expect((await browser.request(`${second.url}hub/home`)).status).toBe(200);

    const sessions = (await (
      await first.api('/users/alice/sessions', 'admin-service-token')
    ).json()) as {
      sessions: { id: string }[];
    };
    const [session] = sessions.sessions;
    await first.api(`/users/alice/sessions/${session?.id}`, 'admin-service-token', {
      method: 'DELETE',
    });
    expect((await browser.request(`${first.url}hub/home`)).status).toBe(302);
    await until(
      async () => (await browser.request(`${second.url}hub/home`)).status === 302,
      'the other process notices the end of the session',
    );
  });

  test('a token revoked at one process is refused by the other', async () => {
    const shared = await storage();
    await using first = await createTestHub({ Hub: shared });
    await using second = await createTestHub({ Hub: shared });
    await first.api('/users/alice', 'admin-service-token', { method: 'POST' });
    const made = (await (
      await first.api('/users/alice/tokens', 'admin-service-token', { method: 'POST', body: '{}' })
    ).json()) as { id: string; token: string };
    expect((await second.api('/user', made.token)).status).toBe(200);

    await first.api(`/users/alice/tokens/${made.id}`, 'admin-service-token', { method: 'DELETE' });
    expect((await first.api('/user', made.token)).status).toBe(403);
    await until(
      async () => (await second.api('/user', made.token)).status === 403,
      'the other process refuses the token',
    );
  });
});
