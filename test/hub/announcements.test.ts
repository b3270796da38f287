import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import {
  adminToken,
  createServerHub,
  serverPath,
  startUntilReady,
  stopServer,
  submitFormTo,
  tokenOf,
} from '../support/server-hub.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

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
  const pages = ['hub/home', 'hub/admin', 'hub/account', 'hub/spawn'];
  for (const path of pages) expect(await bodyOf(hub, ada, path)).toContain(shown);
  expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain(shown);

  await hub.reload({ Hub: { announcement: 'Up again.' } });
  expect(await bodyOf(hub, ada, 'hub/home')).toContain('Up again.');
  await hub.reload({});
  expect(await bodyOf(hub, ada, 'hub/home')).not.toContain('announcement');

  const inLanguages = { en: 'Down on Friday.', de: 'Am Freitag geschlossen.' };
  const german = { headers: { 'accept-language': 'de' } };
  for (const Hub of [
    { announcement: { text: inLanguages } },
    { announcement_login: inLanguages },
  ]) {
    await hub.reload({ Hub });
    expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain('Down on Friday.');
    const { body } = await new FakeBrowser().request(`${hub.url}hub/login`, german);
    expect(body).toContain('Am Freitag geschlossen.');
    expect(body).not.toContain('Down on Friday.');
  }
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
  expect(await bodyOf(hub, browser, 'hub/account')).toContain('For all.');
  for (const path of ['hub/spawn', 'hub/spawn-pending', 'user/alice/']) {
    expect(await bodyOf(hub, browser, path)).toContain('For those who start.');
  }
  const home = await browser.open(`${hub.url}hub/home`);
  expect((await submitFormTo(browser, home, /logout/)).body).toContain('For those who go.');
});

test('an announcement of the file may be for some pages, of a kind, and end', async () => {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const announcement = { text: 'A course.', level: 'info', pages: ['home'] };
  await using hub = await createTestHub({ Hub: { announcement: { ...announcement, until } } });
  const browser = await hub.logIn('alice');
  expect(await bodyOf(hub, browser, 'hub/home')).toContain(
    '<div class="notice info" role="status">',
  );
  expect(await bodyOf(hub, browser, 'hub/account')).not.toContain('A course.');
  const over = { ...announcement, until: '2020-01-01T00:00:00Z' };
  await hub.reload({ Hub: { announcement: over } });
  expect(await bodyOf(hub, browser, 'hub/home')).not.toContain('A course.');
});

describe('what is announced at run time', () => {
  let hub: TestHub;
  let ada: FakeBrowser;
  let alice: FakeBrowser;

  beforeAll(async () => {
    hub = await createServerHub({
      Hub: { announcement: 'Of the file.' },
      Authenticator: { admin_users: ['ada'] },
    });
    ada = await hub.logIn('ada');
    alice = await hub.logIn('alice');
  });
  afterAll(() => hub?.[Symbol.asyncDispose]());

  async function call(method: string, path: string, body?: object, token = adminToken) {
    const answer = await hub.api(path, token, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>,
    };
  }

  const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

  test('stands in place of the text of the file, on every page, as plain text', async () => {
    const end = inAnHour();
    const put = await call('PUT', '/announcement', { text: all, level: 'warning', until: end });
    expect(put).toMatchObject({ status: 200, body: { text: all, pages: null, until: end } });
    for (const path of ['hub/home', 'hub/account']) {
      const body = await bodyOf(hub, alice, path);
      expect(body).toContain(shown);
      expect(body).not.toContain('Of the file.');
    }
    expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain(shown);
    expect((await call('GET', '/announcement')).body).toMatchObject({ level: 'warning' });

    // Also of those who are not logged in, and while nothing is known of who asks.
    const stands = (said: string) =>
      until(
        async () => (await bodyOf(hub, new FakeBrowser(), 'hub/no-such-page')).includes(said),
        `the page of an error says ${said}`,
      );
    await stands(shown);
    const text = 'See https://example.org/course.';
    await call('PUT', '/announcement', { text, pages: ['login'] });
    expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain(
      'See <a href="https://example.org/course" rel="noopener noreferrer">',
    );
    expect(await bodyOf(hub, alice, 'hub/home')).toContain('Of the file.');
    const both = { en: 'In English: https://example.org/', de: ' Auf Deutsch. ' };
    const inBoth = await call('PUT', '/announcement', { text: both });
    expect(inBoth.body['text']).toEqual({ ...both, de: 'Auf Deutsch.' });
    const german = { headers: { 'accept-language': 'de' } };
    const gruss = await new FakeBrowser().request(`${hub.url}hub/login`, german);
    expect(gruss.body).toContain('Auf Deutsch.');
    expect(await bodyOf(hub, alice, 'hub/home')).toContain('<a href="https://example.org/"');
    await stands('In English');
    const form = await bodyOf(hub, ada, 'hub/admin/announcements');
    expect(form).toMatch(/<textarea[^>]*>\nIn English: https:\/\/example.org\/<\/textarea>/);
    expect(form).toContain('in several languages (en, de)');

    expect((await call('DELETE', '/announcement')).status).toBe(204);
    expect((await call('GET', '/announcement')).body).toMatchObject({ active: false, text: null });
    expect(await bodyOf(hub, new FakeBrowser(), 'hub/login')).toContain('Of the file.');
    await stands('Of the file.');
  });

  test.each([
    [{ text: 'x'.repeat(10_000) }, 'at most 2000'],
    [{ text: ' ' }, 'no text'],
    [{ text: { en: 'Hello.', de: ' ' } }, 'no text'],
    [{ text: { en: 'Hello.', de: 'a\u202eb' } }, 'control characters'],
    [{ text: { en: 'Hello.', de: 'x'.repeat(2001) } }, 'at most 2000'],
    [{ text: {} }, 'needs a text'],
    [{ text: { English: 'Hello.' } }, 'an object with one for each language'],
    [{ text: 'a\u0007b' }, 'control characters'],
    [{ text: 'a\u202eb' }, 'control characters'],
    [{ text: 'Over.', until: '2020-01-01T00:00:00Z' }, 'in the past'],
    [{ text: 'When?', until: 'tomorrow' }, 'until'],
    [{ text: 'Where?', pages: ['everywhere'] }, 'pages'],
    [{ text: 'Who?', level: 'panic' }, 'level'],
    [{ text: 'What?', colour: 'red' }, 'colour'],
  ])('is refused with a reason: %o', async (body, reason) => {
    const answer = await call('PUT', '/announcement', body);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).toContain(reason);
  });

  test('is for holders of the scope', async () => {
    const own = await tokenOf(hub, 'alice', ['self']);
    for (const path of ['/announcement', '/maintenance']) {
      expect((await call('PUT', path, { text: 'Mine.' }, own)).status).toBe(403);
      expect((await call('DELETE', path, undefined, own)).status).toBe(403);
    }
    expect((await call('GET', '/maintenance', undefined, own)).status).toBe(200);
    expect((await alice.request(`${hub.url}hub/admin/announcements`)).status).toBe(403);
  });

  test('maintenance keeps servers from being started, and lets those that run go on', async () => {
    await startUntilReady(hub, serverPath('alice'));
    const until = inAnHour();
    const text = { en: 'New disks.', de: ' Neue Festplatten. ' };
    expect((await call('PUT', '/maintenance', { text, until })).body).toMatchObject({
      text: { en: 'New disks.', de: 'Neue Festplatten.' },
    });
    const home = await bodyOf(hub, alice, 'hub/home');
    expect(home).toContain(`Maintenance until ${until.slice(0, 16).replace('T', ' ')} UTC`);
    expect(home).toContain('New disks.');
    expect((await hub.api('/users/alice', adminToken)).status).toBe(200);
    expect((await alice.open(`${hub.url}user/alice/`)).status).toBe(200);

    const bob = await hub.logIn('bob');
    const spawn = await bob.open(`${hub.url}hub/spawn`);
    expect(spawn.body).toContain('no servers are started');
    const refused = await submitMain(bob, spawn, {});
    expect(refused.status).toBe(503);
    expect(refused.body).toContain('New disks.');
    const german = { headers: { 'accept-language': 'de' } };
    expect((await bob.request(`${hub.url}hub/spawn`, german)).body).toContain('Neue Festplatten.');
    const form = await bodyOf(hub, ada, 'hub/admin/announcements');
    expect(form).toMatch(/<textarea[^>]*name="maintenance_text"[^>]*>\nNew disks\.<\/textarea>/);
    expect(form).toContain('in several languages (en, de)');
    const own = await tokenOf(hub, 'bob', ['self']);
    const answer = await call('POST', '/users/bob/server', {}, own);
    expect(answer).toMatchObject({
      status: 503,
      body: { message: expect.stringContaining('No servers are started during maintenance') },
    });
    expect(Number(answer.retryAfter)).toBeGreaterThan(3_000);
    expect(await (await hub.api('/users/bob/server', adminToken)).json()).toMatchObject({
      status: 404,
    });
    expect((await call('POST', '/users/bob/server', {})).status).toBeLessThan(300);
    const authorization = `token ${adminToken}`;
    const scraped = await fetch(`${hub.url}hub/metrics`, { headers: { authorization } });
    const metrics = await scraped.text();
    expect(metrics).toMatch(/^hub_maintenance 1$/m);

    expect((await call('DELETE', '/maintenance')).status).toBe(204);
    expect((await call('GET', '/maintenance')).body).toMatchObject({ active: false });
    await stopServer(hub, serverPath('alice'));
    expect((await call('POST', '/users/alice/server', {})).status).toBeLessThan(300);
  });

  test('maintenance is scheduled: pages count down to it, and servers start until then', async () => {
    const since = new Date(Date.now() + 2 * 3_600_000).toISOString();
    const put = await call('PUT', '/maintenance', { text: 'Disks.', since, expires_in: 1_800 });
    const end = new Date(Date.parse(since) + 1_800_000).toISOString();
    expect(put).toMatchObject({ status: 200, body: { active: false, since, until: end } });
    expect((await call('GET', '/maintenance')).body).toEqual(put.body);
    for (const browser of [alice, new FakeBrowser()]) {
      const page = await bodyOf(hub, browser, browser === alice ? 'hub/home' : 'hub/login');
      expect(page).toContain(`begins at ${since.slice(0, 16).replace('T', ' ')} UTC`);
      expect(page).toMatch(/data-countdown="7[12]\d\d">in 2 hours</);
      expect(page).toContain('/countdown.');
    }
    await hub.logIn('carol');
    const own = await tokenOf(hub, 'carol', ['self']);
    expect((await call('POST', '/users/carol/server', {}, own)).status).toBeLessThan(300);
    const metrics = await (
      await fetch(`${hub.url}hub/metrics`, { headers: { authorization: `token ${adminToken}` } })
    ).text();
    expect(metrics).toMatch(/^hub_maintenance 0$/m);
    const audit = await (await hub.api('/audit?action=maintenance.schedule', adminToken)).text();
    expect(audit).toContain(since);
    const reversed = await call('PUT', '/maintenance', { since: end, until: since });
    expect(reversed).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('is not after the start') },
    });
    // Without a time it begins at once, and one in the past is no other.
    expect((await call('PUT', '/maintenance', {})).body).toMatchObject({ active: true });
    const past = await call('PUT', '/maintenance', { since: '2020-01-01T00:00:00Z' });
    expect(past.body['active']).toBe(true);
    expect(String(past.body['since']) > '2026').toBe(true);
    expect((await call('DELETE', '/maintenance')).status).toBe(204);
  });

  test('an administrator sees how many servers maintenance meets, then schedules it', async () => {
    const start = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
    const page = await ada.request(`${hub.url}hub/admin/announcements`);
    const maintenance = '/hub/admin/maintenance';
    const asked = await submitTo(ada, page, maintenance, {
      maintenance_text: 'New <disks>.',
      maintenance_start: start,
      step: 'ask',
    });
    expect([asked.status, asked.body.includes('New &lt;disks&gt;.')]).toEqual([200, true]);
    expect(asked.body).toMatch(/[1-9] servers? runs? now\./);
    expect((await call('GET', '/maintenance')).body).toMatchObject({ active: false, since: null });
    const done = await submitTo(ada, asked, maintenance, {});
    expect(done.status).toBe(303);
    expect((await call('GET', '/maintenance')).body).toMatchObject({
      active: false,
      text: 'New <disks>.',
      since: `${start}:00.000Z`,
      until: null,
    });
    const after = await ada.request(`${hub.url}hub/admin/announcements`);
    expect(after.body).toContain(`type="datetime-local" value="${start}"`);
    await submitTo(ada, after, `${maintenance}/end`, {}, 'Cancel maintenance');
    expect((await call('GET', '/maintenance')).body).toMatchObject({ since: null });
  });

  test.each([
    ['/announcement', { text: 'First.' }, { text: 'Second.' }],
    ['/maintenance', { text: 'First.' }, { text: 'Second.' }],
  ])('of two changes of %s at once one is made, and the other is told', async (path, ...bodies) => {
    const etagOf = async () => (await hub.api(path, adminToken)).headers.get('etag') ?? '';
    const change = (method: string, etag: string, body?: object) =>
      hub.api(path, adminToken, {
        method,
        headers: { 'if-match': etag },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const none = await etagOf();
    const both = await Promise.all(bodies.map((body) => change('PUT', none, body)));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412]);
    const [won, reported] = both.toSorted((one, other) => one.status - other.status);
    expect(await reported?.json()).toMatchObject({
      message: 'This has been changed since it was read.',
      hint: expect.stringContaining('ETag'),
    });
    const etag = await etagOf();
    expect([won?.headers.get('etag'), etag === none]).toEqual([etag, false]);
    expect((await change('DELETE', none)).status).toBe(412);
    expect((await call('GET', path)).body).toMatchObject({ active: true });
    // Without a condition the last one counts, as in JupyterHub.
    for (const body of bodies) expect((await call('PUT', path, body)).status).toBe(200);
    expect((await call('GET', path)).body).toMatchObject({ text: 'Second.' });
    expect((await change('DELETE', await etagOf())).status).toBe(204);
    expect(await etagOf()).toBe(none);
  });

  test('administrators see to both on a page, without scripts', async () => {
    const page = await ada.request(`${hub.url}hub/admin/announcements`);
    const sent = (values: Readonly<Record<string, string>>) =>
      submitTo(ada, page, '/hub/admin/announcements', values);
    expect((await sent({ text: 'x'.repeat(3_000) })).body).toContain('at most 2000');
    const announced = await sent({ text: 'From\r\nthe page.', announcement_end: '3600' });
    expect(announced.status).toBe(303);
    expect((await call('GET', '/announcement')).body).toMatchObject({
      text: 'From\nthe page.',
      level: 'info',
      until: expect.any(String),
    });
    const begun = await submitTo(ada, page, '/hub/admin/maintenance', { maintenance_text: '' });
    expect(begun.status).toBe(303);
    const after = await ada.request(`${hub.url}hub/admin/announcements`);
    expect(after.body).toContain('End maintenance');
    await submitTo(ada, after, '/hub/admin/maintenance/end', {}, 'End maintenance');
    await submitTo(ada, after, '/hub/admin/announcements/remove', {}, 'Remove announcement');
    expect((await call('GET', '/maintenance')).body).toMatchObject({ active: false });
    expect((await call('GET', '/announcement')).body).toMatchObject({ active: false, text: null });
    const audit = await (await hub.api('/audit?action=maintenance.begin', adminToken)).text();
    expect(audit).toContain('"ada"');
  });

  test('on the page, who was slower is told what someone else has done meanwhile', async () => {
    const at = '/hub/admin/announcements';
    const open = () => ada.request(`${hub.url}hub/admin/announcements`);
    const drawn = await open();
    await call('PUT', '/announcement', { text: 'Of <another>.', level: 'warning' });
    // What is wrong with it besides is told first, and does not hide the rest.
    const wrong = await submitTo(ada, drawn, at, { text: 'x'.repeat(3_000) });
    expect([wrong.status, wrong.body.includes('at most 2000')]).toEqual([400, true]);
    const mine = { text: 'Mine.', page: 'login', announcement_end: '3600' };
    const reported = await submitTo(ada, wrong, at, mine);
    expect(reported.status).toBe(400);
    expect(reported.body).toContain('changed since you opened it, by Service admin-service.');
    expect(reported.body).toContain('<dd>Of &lt;another&gt;.</dd>');
    expect(reported.body).toContain('<dd>Warning</dd>');
    expect(reported.body).toMatch(/<textarea[^>]*>\nMine\.<\/textarea>/);
    for (const kept of ['info', 'login', '3600']) {
      expect(reported.body).toContain(`<option value="${kept}" selected>`);
    }
    expect((await call('GET', '/announcement')).body).toMatchObject({ text: 'Of <another>.' });
    expect((await submitTo(ada, reported, at, mine)).status).toBe(303);
    expect((await call('GET', '/announcement')).body).toMatchObject({ text: 'Mine.' });
    const other = await open();
    await submitTo(ada, await open(), at, { text: 'Mine, later.' });
    const kept = await submitTo(ada, other, `${at}/remove`, {}, 'Remove announcement');
    expect(kept.body).toContain('by <a href="/hub/admin/users/ada">ada</a>');
    expect((await call('GET', '/announcement')).body).toMatchObject({ active: true });
    await submitTo(ada, kept, `${at}/remove`, {}, 'Remove announcement');
    const gone = await submitTo(ada, kept, at, { text: 'Once more.' });
    expect(gone.body).toContain('Now there is none.');
    expect((await call('GET', '/announcement')).body).toMatchObject({ active: false });

    const both = [await open(), await open()] as const;
    const begin = (page: (typeof both)[0], values: Record<string, string>, part?: string) =>
      submitTo(
        ada,
        page,
        `/hub/admin/maintenance${part === undefined ? '' : '/end'}`,
        values,
        part,
      );
    await begin(both[0], { maintenance_text: 'New disks.' });
    const late = await begin(both[1], { maintenance_text: 'New cables.' });
    expect(late.body).toContain('<dd>New disks.</dd>');
    expect(late.body).toMatch(/<textarea[^>]*>\nNew cables\.<\/textarea>/);
    expect((await call('GET', '/maintenance')).body).toMatchObject({ text: 'New disks.' });
    expect((await begin(late, { maintenance_text: 'New cables.' })).status).toBe(303);
    const early = await begin(late, {}, 'End maintenance');
    expect(early.body).toContain('<dd>New cables.</dd>');
    expect((await begin(early, {}, 'End maintenance')).status).toBe(303);
  });
});
