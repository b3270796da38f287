import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { createHubFolder, startHubProcess } from '../support/hub-process.ts';
import { requires } from '../support/requires.ts';
import { submitLogin, until } from '../support/test-hub.ts';

const aheadSeconds = 300;
const cookie_secret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function startHub(database_url: string, offsetSeconds: number) {
  const folder = await createHubFolder({
    Hub: { database_url, cookie_secret },
    Authenticator: { allow_all: true, lockout_attempts: 2, lockout_delay: 60 },
  });
  opened.push(folder);
  const clock = await createFakeClock(folder.directory);
  await clock.set(offsetSeconds);
  const hub = await startHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    env: clock.env,
  });
  opened.push(hub);
  const api = (path: string, token: string, init: RequestInit = {}) =>
    fetch(folder.apiUrl + path, {
      ...init,
      headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
    });
  return { url: folder.url, api };
}

describe.skipIf(!requires('postgres', 'faketime'))(
  'two hubs, of which one has its clock five minutes ahead',
  () => {
    const cluster = usePostgres();

    test('agree on when tokens and lockouts end', async () => {
      const database_url = await cluster().createDatabase();
      const [here, ahead] = [
        await startHub(database_url, 0),
        await startHub(database_url, aheadSeconds),
      ];
      const shown = (await ahead.api('/info', 'admin-service-token')).headers.get('date');
      expect(Date.parse(shown ?? '') - Date.now()).toBeGreaterThan((aheadSeconds - 60) * 1000);
      await here.api('/users/alice', 'admin-service-token', { method: 'POST' });
      async function makeToken(at: typeof here, expires_in: number): Promise<string> {
        const answer = await at.api('/users/alice/tokens', 'admin-service-token', {
          method: 'POST',
          body: JSON.stringify({ expires_in }),
        });
        return ((await answer.json()) as { token: string }).token;
      }

      const fresh = await makeToken(here, 120);
      expect((await ahead.api('/user', fresh)).status).toBe(200);
      const short = await makeToken(ahead, 3);
      expect((await here.api('/user', short)).status).toBe(200);
      await until(async () => (await here.api('/user', short)).status === 403, 'it has ended');
      expect((await ahead.api('/user', short)).status).toBe(403);

      const tryLogin = async ({ url }: typeof here, password: string) =>
        (await submitLogin(new FakeBrowser(), url, 'bob', password)).status;
      expect(await tryLogin(here, 'wrong')).toBe(401);
      expect(await tryLogin(ahead, 'wrong')).toBe(401);
      expect(await tryLogin(here, 'test')).toBe(429);
      expect(await tryLogin(ahead, 'test')).toBe(429);
    });

    test('carry a login on, each with the cookies of the other', async () => {
      const database_url = await cluster().createDatabase();
      const [here, ahead] = [
        await startHub(database_url, 0),
        await startHub(database_url, aheadSeconds),
      ];
      for (const [from, to] of [
        [here, ahead],
        [ahead, here],
      ] as const) {
        const browser = new FakeBrowser();
        expect((await submitLogin(browser, from.url, 'alice', 'test')).status).toBe(302);
        // Cookies know no ports: the same ones go to the other hub.
        expect((await browser.request(`${to.url}hub/home`)).status).toBe(200);
        expect((await browser.request(`${to.url}hub/account`)).body).not.toContain('Confirm');
      }
    });
  },
);
