import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { createTestHub, submitLogin, type TestHub } from '../support/test-hub.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

describe.skipIf(!hasPostgres() || !hasRedis())('limits count over all hubs', () => {
  const cluster = usePostgres();
  const redis = useRedis();

  async function startTwo(storage: Readonly<Record<string, string>>): Promise<TestHub[]> {
    const config = {
      Hub: {
        ...storage,
        services: [
          {
            name: 'wiki',
            url: 'http://127.0.0.1:9',
            api_token: 'wiki-secret-0123456789',
            oauth_redirect_uri: 'http://127.0.0.1:9/services/wiki/oauth_callback',
          },
        ],
      },
      Authenticator: { lockout_attempts: 6, lockout_delay: 60 },
    };
    const hubs = [await createTestHub(config), await createTestHub(config)];
    opened.push(...hubs);
    return hubs;
  }

  test.each(['PostgreSQL', 'Redis'])(
    'of failed logins, also at once, kept in %s',
    async (store) => {
      const database_url = await cluster().createDatabase();
      const hubs = await startTwo({
        database_url,
        ...(store === 'Redis' && { keyv_url: redis().url }),
      });
      const attempt = async (hub: TestHub, userName: string, password: string) =>
        (await submitLogin(new FakeBrowser(), hub.url, userName, password)).status;
      for (let round = 0; round < 3; round += 1) {
        const answers = await Promise.all(hubs.map((hub) => attempt(hub, 'alice', 'wrong')));
        expect(answers).toEqual([401, 401]);
      }
      // The sixth failure was the last: no count was lost where two hubs counted in the same moment.
      expect(await Promise.all(hubs.map((hub) => attempt(hub, 'alice', 'test')))).toEqual([
        429, 429,
      ]);
      expect(await attempt(hubs[0]!, 'bob', 'test')).toBe(302);
      expect(await attempt(hubs[1]!, 'bob', 'test')).toBe(302);
    },
  );

  test.each(['PostgreSQL', 'Redis'])('of guesses all at once, kept in %s', async (store) => {
    const database_url = await cluster().createDatabase();
    const hubs = await startTwo({
      database_url,
      // A database of its own there, in which nobody has failed.
      ...(store === 'Redis' && { keyv_url: new URL('/1', redis().url).href }),
    });
    const guesses = (count: number, nameOf: (index: number) => string) =>
      Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const hub = hubs[index % 2] as TestHub;
          return (await submitLogin(new FakeBrowser(), hub.url, nameOf(index), 'wrong')).status;
        }),
      );
    const compared = (answers: readonly number[]) =>
      answers.filter((status) => status === 401).length;
    // Six for a name, sixty for an address.
    expect(compared(await guesses(24, () => 'alice'))).toBe(6);
    expect(compared(await guesses(120, (index) => `name${index}`))).toBe(54);
  });

  test('of wrong client secrets', async () => {
    const [first, second] = await startTwo({ database_url: await cluster().createDatabase() });
    async function guess(hub: TestHub | undefined, secret = 'wrong') {
      const answer = await fetch(`${hub?.apiUrl}/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code: 'x',
          client_id: 'service-wiki',
          client_secret: secret,
        }),
      });
      return ((await answer.json()) as { error_description: string }).error_description;
    }
    for (let failure = 0; failure < 30; failure += 1) {
      expect(await guess(failure % 2 === 0 ? first : second)).toMatch(
        /its secret or assertion is wrong/,
      );
    }
    // Each hub has learned with its last failure how many there were.
    expect(await guess(second, 'wiki-secret-0123456789')).toMatch(/Too many failed attempts/);
    await guess(first);
    expect(await guess(first, 'wiki-secret-0123456789')).toMatch(/Too many failed attempts/);
  });
});
