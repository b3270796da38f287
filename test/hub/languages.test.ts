import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

const folder = mkdtempSync(join(tmpdir(), 'hub-languages-'));
const write = (file: string, content: unknown): void =>
  writeFileSync(
    join(folder, file),
    typeof content === 'string' ? content : JSON.stringify(content),
  );

describe('the language of pages', () => {
  let hub: TestHub;
  beforeAll(async () => {
    write('fr.json', { 'Page not found': 'Rien ici', 'Error {0}': 'Erreur' });
    write('en.json', { 'Page not found': 'Nothing to see' });
    write('xx_.json', {});
    write('it.json', '{');
    hub = await createTestHub({
      Hub: { languages_dir: folder },
      Authenticator: { admin_users: ['ada'] },
    });
  });
  afterAll(async () => {
    await hub[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  async function titleOf(
    headers: Readonly<Record<string, string>>,
    { path = 'hub/no-such-page', browser = new FakeBrowser() } = {},
  ): Promise<string> {
    const { body } = await browser.request(`${hub.url}${path}`, { headers });
    const [, lang = ''] = /<html lang="([^"]+)"/.exec(body) ?? [];
    const [, title = ''] = /<h1>([^<]+)<\/h1>/.exec(body) ?? [];
    return `${lang}: ${title}`;
  }

  test.for([
    [{}, 'en: Nothing to see'],
    [{ 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' }, 'de: Seite nicht gefunden'],
    [{ 'accept-language': 'ja,fr;q=0.1' }, 'fr: Rien ici'],
    [{ 'accept-language': 'ja' }, 'en: Nothing to see'],
    [{ 'accept-language': '*;q=x,,;' }, 'en: Nothing to see'],
    [{ 'accept-language': 'de', cookie: 'hub-preferences=language=fr' }, 'fr: Rien ici'],
    [
      { 'accept-language': 'de', cookie: 'hub-preferences=language=ja' },
      'de: Seite nicht gefunden',
    ],
  ] as const)('follows %j', async ([headers, title]) => {
    expect(await titleOf(headers)).toBe(title);
  });

  test('is that of the browser where no page of the hub could be found, too', async () => {
    expect(await titleOf({ 'accept-language': 'de' }, { path: 'nowhere/at/all' })).toMatch(/^de: /);
  });

  test('is chosen by a form, before the login too, and holds after it', async () => {
    const browser = await hub.logIn('alice');
    const home = await browser.open(`${hub.url}hub/home`);
    expect(home.body).toContain('<html lang="en" dir="ltr">');
    const chosen = await submitTo(browser, home, '/hub/preferences', { language: 'de' });
    expect(chosen.headers.location).toBe('/hub/home');
    const after = await browser.follow(chosen);
    expect(after.body).toContain('<html lang="de" dir="ltr">');
    expect(after.body).toContain('Zum Inhalt springen');
    expect(after.body).toMatch(/value="de" lang="de" aria-pressed="true">Deutsch</);

    const visitor = new FakeBrowser();
    const login = await visitor.open(`${hub.url}hub/login`);
    const back = await submitTo(visitor, login, '/hub/preferences', { language: 'de' });
    expect((await visitor.follow(back)).body).toContain('<html lang="de" dir="ltr">');
  });

  test('is that of what the hub itself wrote into its tables, such as the purpose of a role', async () => {
    const browser = await hub.logIn('ada');
    const { body } = await browser.request(`${hub.url}hub/admin/roles`, {
      headers: { 'accept-language': 'de' },
    });
    expect(body).toContain('Was Administratoren dürfen.');
    expect(body).not.toContain('What administrators may do.');
  });

  test('is that of what is wrong with one field', async () => {
    const browser = await hub.logIn('ada');
    const home = await browser.open(`${hub.url}hub/home`);
    await submitTo(browser, home, '/hub/preferences', { language: 'de' });
    const reported = async (path: string, fields: Record<string, string>) => {
      const form = await browser.request(`${hub.url}hub/admin/${path}`);
      const { body } = await submitMain(browser, form, fields);
      return /<(div class="notice bad|p class="problem)[^>]*>([\s\S]*?)<\/(?:div|p)>/
        .exec(body)?.[2]
        ?.replace(/<[^>]*>/g, '');
    };
    const scope = { name: 'watchers', filtered: 'servers!user=*' };
    expect(await reported('new-role', scope)).toContain(
      'ist ein Platzhalter: Filter nehmen nur ganze',
    );
    expect(await reported('new-role', { name: 'No name' })).toContain('Muss 3 bis 255 Zeichen');
    const taken = { name: 'mine', url: hub.url, access: 'gateway' };
    expect(await reported('new-service', taken)).toContain('Ist eine Adresse des Hubs selbst.');
    const wrong = { ...taken, url: 'ftp://files' };
    expect(await reported('new-service', wrong)).toContain('Ist keine URL mit http://');
  });

  test('is English for programs', async () => {
    const answer = await new FakeBrowser().request(`${hub.url}hub/api/no-such-thing`, {
      headers: { accept: 'application/json', 'accept-language': 'de' },
    });
    expect(JSON.parse(answer.body)).toMatchObject({ message: 'There is nothing at this address.' });
  });

  test('no cache keeps a page for readers of another language', async () => {
    for (const path of ['hub/no-such-page', 'hub/login', 'nowhere']) {
      const { headers } = await new FakeBrowser().request(`${hub.url}${path}`);
      expect(headers['cache-control'], path).toContain('no-store');
    }
  });

  test('has the texts of the folder as they are since the reload', async () => {
    write('fr.json', { 'Page not found': 'Il n’y a rien ici' });
    await hub.reload({ Hub: { languages_dir: folder, language: 'fr' } });
    expect(await titleOf({})).toBe('fr: Il n’y a rien ici');
    expect(hub.logLines.filter(({ msg }) => String(msg).includes('need a restart'))).toEqual([]);
  });
});
