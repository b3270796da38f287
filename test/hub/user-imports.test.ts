import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCsv } from '../../src/platform/protocol/csv.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { adminToken } from '../support/server-hub.ts';
import { submitForm, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let ada: FakeBrowser;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob', 'helper'], {
    Hub: {
      load_groups: [
        { name: 'stats', users: ['bob'] },
        { name: 'bosses', users: [] },
        { name: 'ruled', users: [] },
      ],
      load_roles: [
        {
          name: 'helpers',
          scopes: ['admin-ui', 'admin:users', 'groups!group=stats', 'groups!group=ruled'],
          users: ['helper'],
        },
        { name: 'boss', scopes: ['admin:servers'], groups: ['bosses'] },
        {
          name: 'rulers',
          scopes: ['admin:servers!group=ruled', 'list:users', 'admin-ui'],
          users: ['bob'],
        },
        { name: 'reader', scopes: ['list:users'], services: [] },
      ],
    },
  });
  ada = await hub.logIn('ada', testPassword);
});
afterAll(() => hub[Symbol.asyncDispose]());

const addressIn = ({ headers }: BrowserAnswer) => new URL(headers.location ?? '', hub.url).href;
const at = (path: string) => `${hub.url}hub/admin/${path}`;

async function preview(browser: FakeBrowser, people: string): Promise<BrowserAnswer> {
  const form = await browser.request(at('new-users'));
  return submitTo(browser, form, '/hub/admin/new-users', { people });
}

/** The address of the report. */
async function create(browser: FakeBrowser, people: string): Promise<string> {
  const shown = await preview(browser, people);
  const sent = await submitTo(browser, shown, '/hub/admin/import-users', { act: 'import' });
  return addressIn(sent);
}

async function exists(name: string): Promise<boolean> {
  return (await hub.api(`/users/${name}`, adminToken)).ok;
}

const textOf = ({ body }: BrowserAnswer) =>
  body.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

async function importByApi(token: string, users: readonly unknown[], isDry = false) {
  const body = JSON.stringify({ users, dry_run: isDry });
  const answer = await hub.api('/user-imports', token, { method: 'POST', body });
  expect(answer.status).toBe(200);
  const results = (await answer.json()) as { result: string; reason?: string }[];
  return results.map(({ result, reason = '' }) => `${result} ${reason}`.trim());
}

describe('a pasted table of users', () => {
  const students = Array.from(
    { length: 60 },
    (_, n) => `s${n};Student ${n};s${n}@uni.example;stats`,
  );
  const wrong = [
    'bob;;;',
    's3;Again;;',
    '=cmd;;;',
    'x/y;;;',
    'mail;;no address;',
    'far;;;nowhere',
    'mia@uni.example;;;',
  ];
  const table = ['Username;Name;E-Mail;Group', ...students, ...wrong].join('\r\n');

  test('is shown with what is wrong, and makes nothing yet', async () => {
    const page = await preview(ada, table);
    const shown = textOf(page);
    expect(shown).toContain('61 users will be created. 6 lines are left out.');
    for (const part of [
      '62 bob Exists already',
      '63 s3 Again Listed twice',
      '64 =cmd Not possible It begins as a formula',
      '65 x/y Not possible &quot;x/y&quot;',
      '66 mail no address Not possible This is not an e-mail address',
      '67 far nowhere Not possible There is no such group',
      '68 mia@uni.example Will be created The user name is an e-mail address.',
    ])
      expect(shown).toContain(part);
    expect(await exists('s0')).toBe(false);
    const again = await submitTo(ada, page, '/hub/admin/new-users', { edit: 'true' });
    expect(again.body).toContain('s59;Student 59;s59@uni.example;stats');
  });

  test('makes the users of its right lines, whose report, links and undo stay', async () => {
    const url = await create(ada, table);
    await until(async () => textOf(await ada.request(url)).includes('Finished for all.'), 'report');
    const user = await (await hub.api('/users/s7', adminToken)).json();
    expect(user).toMatchObject({
      groups: ['stats'],
      user_info: { display_name: 'Student 7', email: 's7@uni.example' },
    });
    expect(await exists('username')).toBe(false);
    const shown = await ada.request(url);
    const file = await submitTo(ada, shown, '/hub/admin/import-users', { act: 'links' });
    expect(file.headers['content-disposition']).toContain('links.csv');
    const { lines } = await readCsv(file.body);
    expect(lines).toHaveLength(62);
    const link = lines.find(({ cells }) => cells[0] === 's7')?.cells;
    expect(link).toEqual([
      's7',
      's7@uni.example',
      expect.stringContaining('/hub/invitation?secret='),
    ]);

    const used = await ada.request(url);
    expect(used.body).toContain('Link works until');
    expect(used.body).not.toContain('No link that works');
    const secret = new URL(link?.[2] ?? '').searchParams.get('secret') ?? '';
    const s7 = new FakeBrowser();
    const chosen = { secret, new_password: testPassword, repeat_password: testPassword };
    const invitation = await s7.request(link?.[2] ?? '');
    await submitForm(s7, invitation, chosen);
    const undone = await submitTo(
      ada,
      used,
      '/hub/admin/import-users',
      { act: 'undo' },
      'value="undo"',
    );
    const next = addressIn(undone);
    await until(
      async () => textOf(await ada.request(next)).includes('Finished for all.'),
      'report',
    );
    expect([await exists('s8'), await exists('s7')]).toEqual([false, true]);
    expect(await exists('bob')).toBe(true);
  });

  test('that has no names, or a quotation mark too few, is refused with what was typed', async () => {
    const none = await preview(ada, 'email,group\nx@y.example,stats');
    expect([none.status, textOf(none).includes('No column has user names.')]).toEqual([400, true]);
    const open = await preview(ada, 'name,email\nzed,"x');
    expect(textOf(open)).toContain('Line 2: a quotation mark is not closed.');
    expect(open.body).toContain('zed,&quot;x</textarea>');
  });
});

describe('users by the list over the API', () => {
  test('each get what the caller may give, and nothing of the others', async () => {
    const helper = await hub.logIn('helper', testPassword);
    const page = textOf(
      await preview(
        helper,
        'user,groups,role\nh1,stats,\nh2,bosses,\nh3,,reader\nh4,,admin\n"Doe, Jane",,',
      ),
    );
    for (const part of [
      'h1 stats Will be created',
      'h2 bosses Not possible You may not add users to the group “bosses”.',
      'h3 reader Not possible You may not give the role “reader”.',
      'h4 Yes Not possible Only an administrator may do this',
      'Doe, Jane Will be created The user name has a space in it.',
    ])
      expect(page).toContain(part);
  });

  test('are made, or only judged, and told apart', async () => {
    const users = [
      { name: 'Api1', email: 'api1@uni.example', groups: ['stats'] },
      { name: 'api1' },
      { name: 'api2', groups: ['nowhere'] },
    ];
    const missing = 'invalid There is no such group.';
    const dry = await importByApi(adminToken, users, true);
    expect([dry[0], dry[1], dry[2]?.startsWith(missing.slice(0, 20))]).toEqual([
      'create',
      'duplicate',
      true,
    ]);
    expect(await exists('api1')).toBe(false);
    expect((await importByApi(adminToken, users)).slice(0, 2)).toEqual(['created', 'duplicate']);
    expect((await importByApi(adminToken, users))[0]).toBe('exists');
  });

  test('are undone within an hour, but for those who have been here', async () => {
    await importByApi(adminToken, [{ name: 'wrong1' }, { name: 'wrong2' }]);
    // Added otherwise, and by another.
    await hub.api('/users/single', adminToken, { method: 'POST' });
    await create(ada, 'ofada');
    const undo = async (...usernames: string[]) => {
      const body = JSON.stringify({ usernames });
      const answer = await hub.api('/user-imports', adminToken, { method: 'DELETE', body });
      return answer.json();
    };
    const reason = 'No import of yours created this account within the last hour.';
    expect(await undo('wrong1', 'bob', 'nobody', 'single', 'ofada')).toEqual([
      { name: 'wrong1', result: 'deleted' },
      { name: 'bob', result: 'kept', reason: 'This account is in use.' },
      { name: 'nobody', result: 'kept', reason: 'There is no such user.' },
      { name: 'single', result: 'kept', reason },
      { name: 'ofada', result: 'kept', reason },
    ]);
    expect([await exists('wrong1'), await exists('wrong2')]).toEqual([false, true]);
    // The name is that of another account by now.
    await hub.api('/users/wrong2', adminToken, { method: 'DELETE' });
    await hub.api('/users/wrong2', adminToken, { method: 'POST' });
    expect(await undo('wrong2')).toEqual([{ name: 'wrong2', result: 'kept', reason }]);
  });

  test('can be 100,000, with what is wrong in the last of them', async () => {
    const names = Array.from({ length: 99_999 }, (_, index) => `p${index.toString(36)}`);
    const shown = textOf(await preview(ada, [...names, 'bob'].join('\n')));
    expect(shown).toMatch(/99,?999 users will be created\. 1 line is left out\./);
    expect(shown).toContain('100000 bob Exists already');
  });

  test('are not there at all where their group is refused after they were made', async () => {
    const helper = await hub.logIn('helper', testPassword);
    const url = await create(helper, 'user,groups\nhalf,ruled\nwhole,stats');
    await until(
      async () => textOf(await helper.request(url)).includes('Finished, but not for all.'),
      'the report tells of the one',
    );
    expect([await exists('half'), await exists('whole')]).toEqual([false, true]);
  });

  test('are made only while their maker may make them', async () => {
    const change = (admin: boolean) =>
      hub.api('/users/bob', adminToken, { method: 'PATCH', body: JSON.stringify({ admin }) });
    expect((await change(true)).status).toBe(200);
    const bob = await hub.logIn('bob', testPassword);
    const names = Array.from({ length: 3_000 }, (_, index) => `many${index}`);
    // Answered a moment later, or when all are made.
    const creating = create(bob, names.join('\n'));
    await until(() => exists('many0'), 'the first is made');
    expect((await change(false)).status).toBe(200);
    const url = await creating;
    await until(
      async () => textOf(await bob.request(url)).includes('Finished, but not for all.'),
      'the rest fails',
    );
    expect([await exists('many0'), await exists('many2999')]).toEqual([true, false]);
  });
});
