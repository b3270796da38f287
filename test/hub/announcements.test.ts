import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitFormTo } from '../support/server-hub.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

const all = 'Down on Friday <b>at 18:00</b>.\nSave your work.';
const shown = 'Down on Friday &lt;b&gt;at 18:00&lt;/b&gt;.\nSave your work.';

async function bodyOf(hub: TestHub, browser: FakeBrowser, path: string): Promise<string> {
  return (await browser.open(`${hub.url}${path}`)).body;
}

test('an announcement stands on every page as plain text, until the file says otherwise', async () => {
  await using hub = await createTestHub({
    Hub: { announcement: all },
    Authenticator: { admin_users: ['ada'] },
  });
  const ada = await hub.logIn('ada');
  const pages = ['hub/home', 'hub/token', 'hub/sessions', 'hub/admin', 'hub/account', 'hub/spawn'];
  for (const path of pages) expect(await bodyOf(hub, ada, path)).toContain(shown);
  expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain(shown);

  await hub.reload({ Hub: { announcement: 'Up again.' } });
  expect(await bodyOf(hub, ada, 'hub/home')).toContain('Up again.');
  await hub.reload({});
  expect(await bodyOf(hub, ada, 'hub/home')).not.toContain('announcement');
  const restarts = hub.logLines.filter(({ msg }) => String(msg).includes('need a restart'));
  expect(restarts).toEqual([]);
});

test('a page may have an announcement of its own, or none', async () => {
  await using hub = await createTestHub({
    Hub: {
      announcement: 'For all.',
      announcement_login: 'For those who come.',
      announcement_home: '',
      announcement_spawn: 'For those who start.',
      announcement_logout: 'For those who go.',
    },
  });
  const login = await bodyOf(hub, new FakeBrowser(), 'hub/login');
  expect(login).toContain('For those who come.');
  expect(login).not.toContain('For all.');
  const browser = await hub.logIn('alice');
  expect(await bodyOf(hub, browser, 'hub/home')).not.toContain('For all.');
  expect(await bodyOf(hub, browser, 'hub/token')).toContain('For all.');
  for (const path of ['hub/spawn', 'hub/spawn-pending', 'user/alice/']) {
    expect(await bodyOf(hub, browser, path)).toContain('For those who start.');
  }
  const home = await browser.open(`${hub.url}hub/home`);
  expect((await submitFormTo(browser, home, /logout/)).body).toContain('For those who go.');
});
