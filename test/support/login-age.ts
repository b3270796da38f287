import { FakeBrowser } from './fake-browser.ts';
import { changeDatabase } from './hub-database.ts';
import type { TestHub } from './test-hub.ts';

/** Makes every login of a hub as old as if its user had logged in an hour ago. */
export async function ageLogins(hub: Pick<TestHub, 'directory'>): Promise<void> {
  await changeDatabase(hub, (database) => {
    const rows = database
      .prepare(`select key, value from keyv where value like '%"authenticatedAt":%'`)
      .all() as unknown as { readonly key: string; readonly value: string }[];
    if (rows.length === 0) throw new Error('there is no login to make older');
    const update = database.prepare('update keyv set value = ? where key = ?');
    for (const { key, value } of rows) {
      const anHourAgo = `"authenticatedAt":${Date.now() - 3_600_000}`;
      update.run(value.replace(/"authenticatedAt":\d+/, anHourAgo), key);
    }
  });
}

/** A second browser with the cookies of a first one, as a thief of them has. */
export function withStolenCookies(browser: FakeBrowser): FakeBrowser {
  const thief = new FakeBrowser();
  for (const name of browser.cookieNames()) {
    const cookie = browser.cookie(name);
    if (cookie !== undefined) thief.setCookie(name, cookie.value, cookie.path);
  }
  return thief;
}
