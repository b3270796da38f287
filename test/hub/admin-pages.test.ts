import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { fixtureApp } from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let ada: FakeBrowser;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob', 'helper', 'onlooker', 'plain', 'zoë ö'], {
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
    Hub: {
      cleanup_servers: true,
      load_groups: [{ name: 'staff', users: ['bob'] }],
      load_roles: [
        { name: 'boss', scopes: ['admin:users', 'admin-ui', 'delete:users'], groups: ['bosses'] },
        {
          name: 'helpers',
          scopes: [
            'admin-ui',
            'list:users',
            'read:users',
            'admin:users',
            'delete:users',
            'tokens',
            'groups',
          ],
          users: ['helper'],
        },
        { name: 'minder', scopes: ['tokens!group=minded'], services: ['elsewhere'] },
        { name: 'onlooker', scopes: ['admin-ui', 'list:users!group=staff'], users: ['onlooker'] },
      ],
      services: [
        {
          name: 'ticker',
          command: [
            process.execPath,
            '-e',
            'console.log("tick tock"); setInterval(() => {}, 1000)',
          ],
        },
        { name: 'elsewhere', url: 'http://127.0.0.1:9', api_token: 'elsewhere-token' },
      ],
    },
  });
  ada = await hub.logIn('ada', testPassword);
});
afterAll(() => hub[Symbol.asyncDispose]());

const noSuchUser: string = expect.stringContaining('There is no such user');
const at = (path: string) => `${hub.url}hub/admin${path}`;
const users = (query = '') => at(`/users${query}`);

describe('users', () => {
  test('are listed, found and sorted', async () => {
    const all = await ada.request(users());
    expect(all.status).toBe(200);
    expect(all.body).toContain('/hub/admin/users/zo%C3%AB%20%C3%B6');
    const found = await ada.request(users('?search=O'));
    expect(found.body).toContain('bob');
    expect(found.body).not.toContain('users/helper"');
    expect((await ada.request(users('?sort=activity'))).status).toBe(200);
    expect((await ada.request(users('?sort=-server&after=4,bob'))).status).toBe(200);
    expect((await ada.request(users('?before=x&sort=;drop'))).status).toBe(200);
    expect((await ada.request(users('?search=%25'))).body).toContain(
      'No user’s name or e-mail address contains “%”',
    );
  });

  test('come in pages', async () => {
    const usernames = Array.from(
      { length: 55 },
      (_, index) => `many${String(index).padStart(2, '0')}`,
    );
    await hub.api('/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ usernames }),
    });
    const first = await ada.request(users('?search=many'));
    expect(first.body).toContain('50 of 55');
    expect(first.body).toContain('many49');
    const last = await ada.request(users('?search=many&before='));
    expect(last.body).toContain('50 of 55');
    expect(last.body).toContain('many54');
    expect(last.body).not.toContain('many04');
  });

  test('are none of them passed over or shown twice when others come and go meanwhile', async () => {
    const usernames = Array.from(
      { length: 30 },
      (_, index) => `turn${String(index + 10).padStart(2, '0')}`,
    );
    const create = (names: readonly string[]) =>
      hub.api('/users', 'admin-service-token', {
        method: 'POST',
        body: JSON.stringify({ usernames: names }),
      });
    const remove = (name: string) =>
      hub.api(`/users/${name}`, 'admin-service-token', { method: 'DELETE' });
    const shownIn = ({ body }: { readonly body: string }) => [
      ...new Set(body.match(/(?<=\/admin\/users\/)turn\d+/g)),
    ];
    const linkIn = ({ body }: { readonly body: string }, rel: 'next' | 'prev') =>
      new RegExp(`href="([^"]+)" rel="${rel}"`).exec(body)?.[1]?.replaceAll('&amp;', '&');
    const turn = async (page: { readonly body: string }, rel: 'next' | 'prev') =>
      ada.request(new URL(linkIn(page, rel) ?? 'about:blank', hub.url).href);

    await create(usernames);
    const first = await ada.request(users('?search=turn&size=10'));
    expect(shownIn(first)).toEqual(usernames.slice(0, 10));
    // One of this page and the last of it go: the next begins where this one ended.
    await remove('turn11');
    await remove('turn19');
    const second = await turn(first, 'next');
    expect(shownIn(second)).toEqual(usernames.slice(10, 20));
    // More come before it than go: none is shown again.
    await create(['turn00', 'turn01', 'turn02']);
    const third = await turn(second, 'next');
    expect(shownIn(third)).toEqual(usernames.slice(20, 30));
    expect(third.body).toContain('10 of 31');
    expect(linkIn(third, 'next')).toBeUndefined();
    await remove('turn30');
    const secondAgain = await turn(third, 'prev');
    expect(shownIn(secondAgain)).toEqual(usernames.slice(10, 20));
    const firstAgain = await turn(secondAgain, 'prev');
    expect(shownIn(firstAgain)).toEqual(
      usernames
        .slice(0, 10)
        .filter((name) => !['turn11', 'turn19'].includes(name))
        .toSpliced(0, 0, 'turn01', 'turn02'),
    );
    // The one that came first is on a page before.
    expect(shownIn(await turn(firstAgain, 'prev'))[0]).toBe('turn00');
    // What is done in the list leads back to the same part of it.
    expect(second.body).toContain('name="after" value="turn19"');
    // Nothing is left behind the page: the last one is shown.
    for (const name of usernames.slice(20)) await remove(name);
    const outside = await ada.request(users('?search=turn&size=10&after=turn29'));
    expect(shownIn(outside)).toEqual(usernames.slice(10, 20));
    expect(linkIn(outside, 'next')).toBeUndefined();
  });

  test('whose server is started or stopped stay in view, with a notice', async () => {
    const list = await ada.request(users('?search=plain&sort=activity'));
    const started = await submitTo(ada, list, '/hub/spawn/plain');
    expect(started.headers.location).toBe('/hub/admin/users?search=plain&sort=activity');
    const after = await ada.follow(started);
    expect(after.body).toContain('Server of plain is starting.');
    const stopped = await submitTo(ada, after, '/hub/stop/plain');
    expect((await ada.follow(stopped)).body).toContain('Server of plain is stopping.');
  });

  test('of a course are shown to its lead, without doors that are locked', async () => {
    const lead = await hub.logIn('onlooker', testPassword);
    const list = await lead.request(users());
    expect(list.body).toContain('<b>bob</b>');
    expect(list.body).not.toContain('/hub/admin/users/bob');
    expect(list.body).not.toContain('Add users');
    expect(list.body).not.toContain('href="/hub/admin/services"');
    // An error within the frame of the pages, with the navigation to go on by.
    const refused = await lead.request(at('/services'));
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('<nav class="site-nav"');
    const nothing = await lead.request(`${hub.url}hub/no-such-page`);
    expect(nothing.status).toBe(404);
    expect(nothing.body).toContain('<nav class="site-nav"');
    expect((await new FakeBrowser().request(nothing.url)).body).not.toContain('site-nav');
  });

  test('of a course tell its lead no more of them than the API does', async () => {
    const lead = await hub.logIn('onlooker', testPassword);
    const list = await lead.request(users());
    for (const known of ['Groups', 'Created', 'Last activity', 'Never logged in', 'In the group']) {
      expect(list.body, known).not.toContain(known);
    }
    expect(list.body).not.toMatch(/<time|Stopped|Running|Administrators/);
    // Nor by which of them are found, or in which order.
    for (const asked of [
      'show=never_active',
      'show=administrator',
      'show=running',
      'group=staff',
      'sort=created',
      'sort=-activity',
      'sort=server',
    ]) {
      expect((await lead.request(users(`?${asked}`))).status, asked).toBe(403);
      const fields = Object.fromEntries(new URLSearchParams(asked));
      const acted = await actOn(lead, users(), { act: 'delete', whom: 'matching', ...fields });
      expect(acted.status, asked).toBe(403);
    }
    for (const asked of ['show=never_active', 'group=staff', 'sort=-activity']) {
      expect((await ada.request(users(`?${asked}`))).status, asked).toBe(200);
    }
  });

  test('get a link that loading its page again does not end', async () => {
    const user = await ada.request(at('/users/zo%C3%AB%20%C3%B6'));
    const path = '/hub/admin/users/zo%C3%AB%20%C3%B6/invitation';
    const shown = await ada.follow(await submitTo(ada, user, path, {}));
    const [link = ''] = /http:[^<]*invitation\?secret=[\w-]+/.exec(shown.body) ?? [];
    const again = await ada.request(shown.url);
    expect(again.status).toBe(302);
    expect(again.headers.location).toBe('/hub/admin/users/zo%C3%AB%20%C3%B6');
    expect((await new FakeBrowser().request(link)).status).toBe(200);
  });

  test('become administrators and cease to be, but not by their own hand', async () => {
    const asks = await ada.request(at('/users/bob/admin'));
    expect(asks.body).toContain('Make bob an administrator?');
    expect((await submitMain(ada, asks, {})).status).toBe(303);
    const bob = await hub.logIn('bob', testPassword);
    const own = await bob.request(at('/users/bob'));
    expect(own.body).toContain('This is you');
    const csrf = /name="_csrf" value="([^"]+)"/.exec(own.body)?.[1] ?? '';
    const demotion = await post(bob, '/users/bob/admin', { _csrf: csrf, admin: 'false' });
    expect(demotion.status).toBe(400);
    const again = await ada.request(at('/users/bob'));
    await submitTo(ada, again, '/hub/admin/users/bob/admin');
    // The rights are gone at once, in the browser that is still logged in.
    expect((await bob.request(users())).status).toBe(403);
  });

  test('have a page with their groups, roles and why, tokens and activity', async () => {
    const url = at('/users/bob');
    await hub.api('/groups/reading', 'admin-service-token', { method: 'POST', body: '{}' });
    await hub.api('/users/bob/tokens', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ note: 'Night shift', scopes: ['read:users:name!user'] }),
    });
    const before = await ada.request(`${url}?tab=access`);
    const logins = await ada.request(`${url}?tab=logins`);
    expect(before.body).toContain('By the configuration file');
    expect(before.body).not.toContain('Night shift');
    expect(logins.body).toMatch(
      /Night shift<ul[^>]*><li title="read:users:name!user">Read the names of users/,
    );
    expect(before.body).toContain('Every user holds it.');
    const add = '/hub/admin/users/bob/add-to-group';
    const wrong = await ada.follow(await submitTo(ada, before, add, { group: 'no such' }));
    expect(wrong.body).toContain('There is no group “no such”.');
    const added = await ada.follow(await submitTo(ada, before, add, { group: 'reading' }));
    expect(added.body).toContain('bob is in the group reading.');
    const remove = '/hub/admin/users/bob/remove-from-group';
    const removed = await ada.follow(await submitTo(ada, added, remove, {}, 'value="reading"'));
    expect(removed.body).toContain('bob is no longer in the group reading.');
    const revoke = '/hub/admin/users/bob/revoke-token';
    const sent = await submitTo(ada, logins, revoke, {}, 'Night shift');
    expect(sent.headers.location).toBe('/hub/admin/users/bob?tab=logins');
    const revoked = await ada.follow(sent);
    expect(revoked.body).toContain('The token is revoked.');
    expect(revoked.body).not.toContain('Revoke the token Night shift');
    // A token of another user is not revoked from this page.
    const other = await hub.api('/users/plain/tokens', 'admin-service-token', {
      method: 'POST',
      body: '{}',
    });
    const { id } = (await other.json()) as { id: string };
    const csrf = /name="_csrf" value="([^"]+)"/.exec(revoked.body)?.[1] ?? '';
    await post(ada, '/users/bob/revoke-token', { _csrf: csrf, token_id: id });
    const kept = await hub.api(`/users/plain/tokens/${id}`, 'admin-service-token');
    expect(kept.status).toBe(200);
  });

  test('have no part of the page that nobody knows', async () => {
    expect((await ada.request(at('/users/bob?tab=rights'))).status).toBe(400);
  });

  test('are deleted only when their name is typed, and then lose their login', async () => {
    await hub.api('/users/leaver', 'admin-service-token', { method: 'POST' });
    const ask = await ada.request(at('/users/leaver/delete'));
    expect((await submitMain(ada, ask, { confirmation: 'leave' })).status).toBe(400);
    expect((await submitMain(ada, ask, { confirmation: 'leaver' })).status).toBe(303);
    expect((await ada.request(at('/users/leaver'))).status).toBe(404);
  });

  test('are logged out from one browser or from all', async () => {
    const [one, two, three] = [
      await hub.logIn('plain', testPassword),
      await hub.logIn('plain', testPassword),
      await hub.logIn('plain', testPassword),
    ];
    const id = one.cookie('hub-session-id')?.value ?? '';
    const page = await ada.request(at('/users/plain?tab=logins'));
    await submitTo(ada, page, '/hub/admin/users/plain/end-session', {}, `value="${id}"`);
    expect((await one.request(`${hub.url}hub/home`)).status).toBe(302);
    expect((await two.request(`${hub.url}hub/home`)).status).toBe(200);
    await submitTo(ada, page, '/hub/admin/users/plain/end-sessions');
    expect((await three.request(`${hub.url}hub/home`)).status).toBe(302);
  });
});

describe('many users at once', () => {
  const crew = Array.from({ length: 12 }, (_, index) => `crew${String(index).padStart(2, '0')}`);
  beforeAll(async () => {
    await hub.api('/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ usernames: crew }),
    });
    await hub.api('/groups/crew', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users: crew.slice(0, 6) }),
    });
  });

  const stateOf = async (name: string) => {
    const answer = await hub.api(`/users/${name}`, 'admin-service-token');
    return answer.status === 404 ? 'gone' : ((await answer.json()) as { groups: string[] });
  };

  test('that are ticked are acted on at once, and the list is shown again', async () => {
    const url = users('?search=crew&sort=-name');
    const ticked = { act: 'start', whom: 'ticked', user: ['crew01', 'crew02'] };
    const started = await actOn(ada, url, ticked);
    expect(started.headers.location).toBe('/hub/admin/users?search=crew&sort=-name');
    const list = await ada.follow(started);
    expect(list.body).toContain('The servers of 2 users are starting or run already.');
    expect((await actOn(ada, url, { ...ticked, act: 'stop' })).status).toBe(303);
    const none = await ada.follow(await actOn(ada, url, { act: 'start', whom: 'ticked' }));
    expect(none.body).toContain('Select at least one user.');
    expect((await actOn(ada, url, { ...ticked, act: 'explode' })).status).toBe(400);
  });

  test('that match are acted on after a page that names their number', async () => {
    const url = users('?group=crew');
    const ask = await actOn(ada, url, { act: 'group', whom: 'matching' });
    expect(ask.status).toBe(200);
    expect(ask.body).toContain('Add 6 users to a group?');
    expect((await submitMain(ada, ask, { to_group: ' ' })).status).toBe(400);
    await hub.api('/groups/winners', 'admin-service-token', { method: 'POST', body: '{}' });
    // Meanwhile another administrator adds one: the number is asked about again.
    await hub.api('/groups/crew/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users: ['crew06'] }),
    });
    const changed = await submitMain(ada, ask, { to_group: 'winners' });
    expect(changed.body).toContain('Add 7 users to a group?');
    expect(changed.body).toContain('there were 6 users');
    expect(await stateOf('crew00')).toMatchObject({ groups: ['crew'] });
    const done = await ada.follow(await submitMain(ada, changed, { to_group: 'winners' }));
    expect(done.body).toContain('7 users added to the group.');
    expect(await stateOf('crew06')).toMatchObject({ groups: ['crew', 'winners'] });
    // Red is for who loses something.
    expect(changed.body).toContain('class="button primary">Add to group');
    const leave = await actOn(ada, users('?group=winners'), { act: 'ungroup', user: ['crew05'] });
    expect(leave.body).toContain('class="button primary danger">Remove from group');
    // Of the list that is filtered by a group.
    const left = await ada.follow(await submitMain(ada, leave, {}));
    expect(left.body).toContain('1 user is not in the group any more.');
    expect(await stateOf('crew05')).toMatchObject({ groups: ['crew'] });
    expect(await stateOf('crew07')).toMatchObject({ groups: [] });
    const audit = await hub.api('/audit?action=group.add_members&limit=50', 'admin-service-token');
    const { entries } = (await audit.json()) as { entries: { target: object; users: string[] }[] };
    // In one transaction.
    const toWinners = entries.filter(({ target }) => JSON.stringify(target).includes('winners'));
    expect(toWinners.map(({ users }) => users)).toEqual([crew.slice(0, 7)]);
  });

  test('are moved between two groups, but for those who are not in the first', async () => {
    for (const name of ['first', 'second'])
      await hub.api(`/groups/${name}`, 'admin-service-token', {
        method: 'POST',
        body: JSON.stringify({ users: name === 'first' ? ['crew07', 'crew08'] : [] }),
      });
    const ticked = { act: 'move', user: ['crew07', 'crew08', 'crew09'] };
    const ask = await actOn(ada, users('?group=first'), ticked);
    expect(ask.body).toContain('Move 3 users to another group?');
    const wrong = await submitMain(ada, ask, { to_group: 'third' });
    expect(wrong.body).toMatch(/value="first"[\s\S]*value="third"[\s\S]*no group “third”/);
    const done = await ada.follow(await submitMain(ada, wrong, { to_group: 'second' }));
    expect(done.body).toContain('2 users moved to the group. Not done for 1 user.');
    expect(done.body).toContain('crew09: Not in the group “first”.');
    expect(await stateOf('crew07')).toMatchObject({ groups: ['second'] });
    expect(await stateOf('crew09')).toMatchObject({ groups: [] });
  });

  test('are added to a group but for those over whom that would give others more', async () => {
    const helper = await hub.logIn('helper', testPassword);
    await hub.api('/groups/minded', 'admin-service-token', { method: 'POST', body: '{}' });
    const added = { act: 'group', user: ['crew07', 'ada', 'crew08', 'no-one'] };
    const ask = await actOn(helper, users(), added);
    // A name that is mistyped is said at its field, and no one has to be ticked again.
    const mistyped = await submitMain(helper, ask, { to_group: 'mindet' });
    expect([mistyped.status, mistyped.body]).toEqual([
      400,
      expect.stringMatching(/value="mindet"[\s\S]*There is no group “mindet”\./),
    ]);
    const reported = await helper.follow(
      await submitMain(helper, mistyped, { to_group: 'minded' }),
    );
    expect(reported.body).toContain('2 users added to the group. Not done for 2 users.');
    expect(reported.body).toContain('ada: Only an administrator may do this to an administrator.');
    expect(reported.body).toContain('no-one');
    expect(await stateOf('crew08')).toMatchObject({ groups: ['minded', 'second'] });
    expect(await stateOf('ada')).toMatchObject({ groups: [] });
  });

  test('are deleted when their number is typed; those that are gone already are told', async () => {
    const url = users('?search=crew1');
    const ask = await actOn(ada, url, { act: 'delete', whom: 'matching' });
    expect(ask.body).toContain('Delete 2 users?');
    expect((await submitMain(ada, ask, { confirmation: '1' })).status).toBe(400);
    expect(await stateOf('crew10')).not.toBe('gone');
    const gone = await ada.follow(await submitMain(ada, ask, { confirmation: '2' }));
    expect(gone.body).toContain('2 users deleted.');
    expect(await stateOf('crew10')).toBe('gone');
    const one = await actOn(ada, users(), { act: 'delete', user: ['crew09'] });
    expect(one.body).toContain('Type crew09 to confirm');
    expect(one.body).toContain('>Delete user</button>');
    const wrong = await submitMain(ada, one, { confirmation: '1' });
    expect([wrong.status, wrong.body]).toEqual([
      400,
      expect.stringContaining('This is not the name of the user.'),
    ]);
    const both = await actOn(ada, users(), { act: 'delete', user: ['crew10', 'ada', 'crew09'] });
    const reported = await ada.follow(await submitMain(ada, both, { confirmation: '3' }));
    expect(reported.body).toContain('1 user deleted. Not done for 2 users.');
    expect(reported.body).toContain('You cannot delete your own account.');
    expect(reported.body).toContain('crew10: There is no such user');
  });

  test('that another administrator deletes or renames meanwhile are told of, never an error of the hub', async () => {
    await hub.api('/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ usernames: ['going', 'moving'] }),
    });
    const other = await hub.logIn('ada', testPassword);
    const page = await ada.request(at('/users/going/delete'));
    const theirs = await other.request(at('/users/going/delete'));
    const first = await submitMain(other, theirs, { confirmation: 'going' });
    expect((await other.follow(first)).body).toContain('going is deleted.');
    const late = await submitMain(ada, page, { confirmation: 'going' });
    expect([late.status, late.body]).toEqual([404, noSuchUser]);

    const before = await ada.request(at('/users/moving'));
    const renamed = await hub.api('/users/moving', 'admin-service-token', {
      method: 'PATCH',
      body: '{"name":"moved"}',
    });
    expect(renamed.status).toBe(200);
    const saved = await submitTo(ada, before, '/hub/admin/users/moving/profile');
    expect([saved.status, saved.body]).toEqual([404, noSuchUser]);
    const started = await submitTo(ada, before, '/hub/spawn/moving');
    expect([started.status, started.body]).toEqual([404, noSuchUser]);
  });

  test('that two administrators delete in the same moment are told as deleted once', async () => {
    const other = await hub.logIn('ada', testPassword);
    const create = (usernames: readonly string[]) =>
      hub.api('/users', 'admin-service-token', {
        method: 'POST',
        body: JSON.stringify({ usernames }),
      });
    const twins = ['twin0', 'twin1', 'twin2'];
    await create(twins);
    const deleteThem = async (browser: FakeBrowser) => {
      const ask = await actOn(browser, users(), { act: 'delete', user: twins });
      return browser.follow(await submitMain(browser, ask, { confirmation: '3' }));
    };
    const reported = await Promise.all([ada, other].map(deleteThem));
    expect(reported.map(({ status }) => status)).toEqual([200, 200]);
    const counts = reported.map(({ body }) => Number(/(\d) users? deleted/.exec(body)?.[1] ?? 0));
    // Each is told of those whom they deleted, and that the others are gone.
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(3);
    expect(reported.map(({ body }) => body).join()).toContain('There is no such user');
    expect(await Promise.all(twins.map(stateOf))).toEqual(twins.map(() => 'gone'));
    const audit = await hub.api('/audit?action=user.delete&limit=50', 'admin-service-token');
    const { entries } = (await audit.json()) as { entries: { target: { name: string } }[] };
    const deleted = entries.map(({ target }) => target.name).filter((name) => twins.includes(name));
    expect(deleted.toSorted()).toEqual(twins);
  });

  test('of whom one goes while their page is open are told of by each of its buttons', async () => {
    const gone = 'leaving';
    await hub.api(`/users/${gone}`, 'admin-service-token', { method: 'POST' });
    await hub.api('/groups/crew/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users: [gone] }),
    });
    await hub.api(`/users/${gone}/tokens`, 'admin-service-token', { method: 'POST', body: '{}' });
    const parts = await Promise.all(
      ['overview', 'access', 'logins'].map((tab) => ada.request(at(`/users/${gone}?tab=${tab}`))),
    );
    const page = { ...parts[0]!, body: parts.map(({ body }) => body).join('') };
    const actions = new Set(
      [...page.body.matchAll(/<form[^>]* action="([^"]*leaving[^"]*)"/g)].map(([, to]) => to ?? ''),
    );
    expect(actions.size).toBeGreaterThan(5);
    await hub.api(`/users/${gone}`, 'admin-service-token', { method: 'DELETE' });
    for (const action of actions) {
      const values = { group: 'crew', display_name: 'Late' };
      const answer = await submitTo(ada, page, action, values);
      // What only ends something has ended: that leads back to the page of the user, which is gone, too.
      const { status, body } = answer.status === 303 ? await ada.follow(answer) : answer;
      // A group is told which of its new members do not exist.
      const expected = action.endsWith('/add-to-group') ? 400 : 404;
      const isNamed =
        /There (?:is no such (?:user|server)|are no such users: &quot;leaving&quot;)/.test(body);
      expect([action, status, isNamed]).toEqual([action, expected, true]);
    }
  });

  test('get links, which make a file', async () => {
    const page = await actOn(ada, users('?search=crew'), {
      act: 'invite',
      user: ['crew03', 'crew04'],
    });
    expect(page.status).toBe(200);
    const links = /<textarea[^>]*>\n([^<]*)</.exec(page.body)?.[1] ?? '';
    expect(links.split('\n')).toHaveLength(2);
    const file = await submitTo(ada, page, '/hub/admin/links.csv', { links });
    expect(file.headers['content-disposition']).toBe('attachment; filename="links.csv"');
    expect(file.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(file.body).toMatch(/^"User","Link"\r\n"crew03","http[^"]+secret=[^"]+"\r\n/);
  });

  test('are acted on only as far as the administrator may act on each', async () => {
    const helper = await hub.logIn('helper', testPassword);
    const list = await helper.request(users());
    expect(list.body).not.toContain('value="start"');
    expect(list.body).not.toContain('the server of crew05');
    expect(list.body).toContain('value="delete"');
    const forced = { act: 'start', user: ['crew05', 'crew07'] };
    const refused = await helper.follow(await actOn(helper, users(), forced));
    expect(refused.body).toContain('Not done for 2 users.');
    const deleted = await actOn(helper, users(), { act: 'delete', user: ['ada', 'crew08'] });
    const reported = await helper.follow(await submitMain(helper, deleted, { confirmation: '2' }));
    expect(reported.body).toContain('1 user deleted. Not done for 1 user.');
    expect(await stateOf('ada')).not.toBe('gone');
    const onlooker = await hub.logIn('onlooker', testPassword);
    const matching = await actOn(onlooker, users(), { act: 'delete', whom: 'matching' });
    // No more than the group that is listed.
    expect(matching.body).toContain('Delete 1 user?');
    const nothing = await submitMain(onlooker, matching, { confirmation: '1' });
    expect((await onlooker.follow(nothing)).body).toContain('Not done for 1 user.');
    expect(await stateOf('bob')).not.toBe('gone');
  });
});

describe('groups', () => {
  test('are made, filled, emptied and deleted', async () => {
    const list = await ada.request(at('/groups'));
    expect(list.body).toContain('staff');
    const made = await submitMain(ada, list, { name: 'a b/ü'.replace('/', '-') });
    expect(made.headers.location).toBe('/hub/admin/groups/a%20b-%C3%BC');
    const group = await ada.request(new URL(made.headers.location ?? '', hub.url).href);
    const wrong = await submitMain(ada, group, { names: 'bob\nnobody-here' });
    expect(wrong.status).toBe(400);
    expect(wrong.body).toContain('nobody-here');
    expect((await submitMain(ada, group, { names: 'bob\nplain' })).status).toBe(303);
    const filled = await ada.request(group.url);
    expect(filled.body).toContain('2 members');
    const remove = '/hub/admin/groups/a%20b-%C3%BC/remove-member';
    await submitTo(ada, filled, remove, {}, 'value="bob"');
    expect((await ada.request(group.url)).body).toContain('1 member');
    // Who puts them into it again is told.
    const staff = await ada.request(at('/groups/staff'));
    const path = '/hub/admin/groups/staff/remove-member';
    const removed = await ada.follow(await submitTo(ada, staff, path, {}, 'value="bob"'));
    expect(removed.body).toContain('the next reload adds them again');
    await hub.api('/groups/staff/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users: ['bob'] }),
    });
    const ask = await ada.request(`${group.url}/delete`);
    await hub.api('/groups/a%20b-%C3%BC/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users: ['bob'] }),
    });
    const late = await submitMain(ada, ask, {});
    expect([late.status, late.body]).toEqual([400, expect.stringContaining('Nothing was deleted')]);
    expect(late.body).toContain('by Service admin-service.');
    expect(late.body).toContain('<dt>Members</dt><dd>2</dd>');
    expect((await submitMain(ada, late, {})).status).toBe(303);
    expect((await ada.request(group.url)).status).toBe(404);
    const twice = await submitMain(ada, await ada.request(at('/groups')), { name: 'staff' });
    expect(twice.body).toContain('exists already');
  });

  test('have properties that are changed as JSON, and not over those of someone else', async () => {
    await hub.api('/groups/quotas', 'admin-service-token', { method: 'POST', body: '{}' });
    const group = await ada.request(at('/groups/quotas'));
    expect(group.body).toContain('/hub/admin/groups/quotas/properties');
    const form = await ada.request(at('/groups/quotas/properties'));
    const properties = '{"disk_gib": 10, "tags": ["a", "<b>"]}';
    for (const [typed, problem] of [
      ['{"disk_gib": 10', 'This is not JSON: '],
      ['[1]', 'This is not a JSON object.'],
      ['null', 'This is not a JSON object.'],
    ] as const) {
      const wrong = await submitMain(ada, form, { properties: typed });
      expect([wrong.status, wrong.body]).toEqual([400, expect.stringContaining(problem)]);
      expect(wrong.body).toContain(typed.replaceAll('"', '&quot;'));
    }
    const saved = await ada.follow(await submitMain(ada, form, { properties }));
    expect(saved.body).toContain('<dt>tags</dt><dd><code>[&quot;a&quot;,&quot;&lt;b&gt;&quot;]');
    const late = await submitMain(ada, form, { properties: '{"disk_gib": 99}' });
    expect([late.status, late.body]).toEqual([400, expect.stringContaining('has been changed')]);
    expect(late.body).toContain('{&quot;disk_gib&quot;: 99}');
    const read = async () =>
      (await (await hub.api('/groups/quotas', 'admin-service-token')).json()) as object;
    expect(await read()).toMatchObject({ properties: JSON.parse(properties) });
    expect((await submitMain(ada, late, { properties: '' })).status).toBe(303);
    expect(await read()).toMatchObject({ properties: {} });
  });

  test('are found and shown a page at a time, however many there are', async () => {
    const groups = Array.from({ length: 60 }, (_, index) => `lab${String(index).padStart(2, '0')}`);
    await hub.api('/groups', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ groups }),
    });
    const found = await ada.request(at('/groups?search=LAB'));
    expect(found.body).toContain('50 of 60');
    expect(found.body).not.toContain('lab50');
    expect((await ada.request(at('/groups?search=LAB&after=lab49'))).body).toContain('lab59');
    expect((await ada.request(at('/groups?search=LAB&after=lab59'))).body).toContain('lab59');
    const users = Array.from({ length: 55 }, (_, index) => `many${String(index).padStart(2, '0')}`);
    await hub.api('/groups/lab00/users', 'admin-service-token', {
      method: 'POST',
      body: JSON.stringify({ users }),
    });
    const second = await ada.request(at('/groups/lab00?before='));
    expect(second.body).toContain('50 of 55');
    const remove = '/hub/admin/groups/lab00/remove-member';
    const removed = await submitTo(ada, second, remove, {}, 'value="many54"');
    expect(removed.headers.location).toBe('/hub/admin/groups/lab00?before=');
    const next = /href="([^"]+)" rel="next"/.exec(
      (await ada.request(at('/groups/lab00'))).body,
    )?.[1];
    expect(next).toBe('/hub/admin/groups/lab00?after=many49');
    const turned = await ada.request(at('/groups/lab00?after=many49'));
    const taken = await submitTo(ada, turned, remove, {}, 'value="many50"');
    expect(taken.headers.location).toBe('/hub/admin/groups/lab00?after=many49');
    expect((await ada.follow(taken)).body).toContain('3 of 53');
    const searched = await ada.request(at('/groups/lab00?search=many53'));
    expect(searched.body).toContain('1 match');
  });

  test('that may do more than the helper are not filled by the helper', async () => {
    await hub.api('/groups/bosses', 'admin-service-token', { method: 'POST', body: '{}' });
    const helper = await hub.logIn('helper', testPassword);
    await hub.api('/groups/harmless', 'admin-service-token', { method: 'POST', body: '{}' });
    const harmless = await helper.request(at('/groups/harmless'));
    expect((await submitMain(helper, harmless, { names: 'helper' })).status).toBe(303);
    // The helper may administer users, so this group gives nothing new; a role with more does.
    await hub.reload({
      Hub: {
        authenticator_class: 'password',
        load_roles: [
          { name: 'boss', scopes: ['admin:servers'], groups: ['bosses'] },
          { name: 'helpers', scopes: ['admin-ui', 'groups'], users: ['helper'] },
        ],
      },
      PasswordAuthenticator: {},
    });
    const bosses = await helper.request(at('/groups/bosses'));
    expect((await submitMain(helper, bosses, { names: 'helper' })).status).toBe(403);
  });
});

/** Sends the form around a list as a browser does, with what is chosen and ticked. */
async function actOn(
  browser: FakeBrowser,
  url: string,
  { user = [], ...values }: { act: string; whom?: string; user?: readonly string[] },
) {
  const { body } = await browser.request(url);
  const [form = ''] =
    body.match(/<form method="post" action="[^"]*act-on-users">[\s\S]*?<table/) ?? [];
  const csrf = /name="_csrf" value="([^"]+)"/.exec(body)?.[1] ?? '';
  const sent = new URLSearchParams({ _csrf: csrf, ...values });
  for (const [, name = '', value = ''] of form.matchAll(
    /type="hidden" name="(\w+)" value="([^"]*)"/g,
  )) {
    sent.set(name, value);
  }
  sent.set('_csrf', csrf);
  for (const name of user) sent.append('user', name);
  return browser.request(at('/act-on-users'), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', referer: url },
    body: sent.toString(),
  });
}

function post(browser: FakeBrowser, path: string, values: Record<string, string>) {
  return browser.request(at(path), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(values).toString(),
  });
}

describe('services', () => {
  test('show their state and last output, and restart', async () => {
    await using own = await createPasswordHub(['ada', 'plain'], {
      Hub: {
        services: [
          {
            name: 'ticker',
            command: [
              process.execPath,
              '-e',
              'console.log("tick tock"); setInterval(() => {}, 1000)',
            ],
          },
        ],
      },
    });
    const browser = await own.logIn('ada', testPassword);
    const list = await browser.request(`${own.url}hub/admin/services`);
    expect(list.body).toContain('href="/hub/admin/services/ticker"');
    const url = `${own.url}hub/admin/services/ticker`;
    const pidOf = (body: string) => /<dt>Process<\/dt><dd>(\d+)/.exec(body)?.[1];
    let page = await browser.request(url);
    await until(async () => {
      page = await browser.request(url);
      return page.body.includes('tick tock') && pidOf(page.body) !== undefined;
    }, 'the output is shown');
    const before = pidOf(page.body);
    expect((await submitTo(browser, page, '/hub/admin/services/ticker/restart')).status).toBe(303);
    await until(async () => {
      const now = pidOf((await browser.request(url)).body);
      return now !== undefined && now !== before;
    }, 'the service has another process');
    const plain = await own.logIn('plain', testPassword);
    for (const path of [url, list.url]) expect((await plain.request(path)).status).toBe(403);
  });
});

// That each page and form refuses who may not, who is not logged in, and who has no CSRF token: entrances.test.ts.
describe('the administration is closed', () => {
  test('to those who may not, without a word about it', async () => {
    const plain = await hub.logIn('plain', testPassword);
    expect((await plain.request(`${hub.url}hub/account`)).body).not.toContain('/hub/admin');
  });

  test("to another site's forms, also with a token of a page", async () => {
    const page = await ada.request(at('/new-users'));
    const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const forged = await ada.request(at('/new-users'), {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'sec-fetch-mode': 'no-cors',
        'sec-fetch-site': 'cross-site',
      },
      body: new URLSearchParams({ _csrf: csrf, names: 'intruder' }).toString(),
    });
    expect(forged.status).toBe(403);
    expect((await hub.api('/users/intruder', 'admin-service-token')).status).toBe(404);
  });
});

describe('a user who may administer a part', () => {
  const scopes = [
    'admin-ui',
    'list:users!group=team',
    'admin:users!group=team',
    'delete:users!group=team',
    'tokens!group=team',
    'read:users!group=team',
  ];

  test('is led from a group to its users only where these may be asked for by group', async () => {
    const readsGroups = ['admin-ui', 'list:users', 'list:groups', 'read:groups'];
    await using own = await createPasswordHub(['some', 'all'], {
      Hub: {
        load_groups: [{ name: 'team', users: ['some'] }],
        load_roles: [
          { name: 'some', scopes: readsGroups, users: ['some'] },
          { name: 'all', scopes: [...readsGroups, 'read:users:groups'], users: ['all'] },
        ],
      },
    });
    for (const [name, status] of [
      ['some', 403],
      ['all', 200],
    ] as const) {
      const browser = await own.logIn(name, testPassword);
      const group = await browser.request(`${own.url}hub/admin/groups/team`);
      expect([name, group.status]).toEqual([name, 200]);
      expect(group.body.includes('Show among users'), name).toBe(status === 200);
      expect((await browser.request(`${own.url}hub/admin/users?group=team`)).status).toBe(status);
    }
  });

  test('sees and changes that part only, and no user who may do more', async () => {
    await using own = await createPasswordHub(['ada', 'lead', 'member', 'outsider'], {
      Hub: {
        load_groups: [{ name: 'team', users: ['member', 'ada'] }],
        load_roles: [{ name: 'lead', scopes, users: ['lead'] }],
      },
    });
    const admin = `${own.url}hub/admin`;
    const lead = await own.logIn('lead', testPassword);
    const list = await lead.request(`${admin}/users`);
    expect(list.body).toContain('users/member"');
    expect(list.body).not.toContain('users/outsider"');
    const page = await lead.request(`${admin}/users/member`);
    expect(page.status).toBe(200);
    expect((await lead.request(`${admin}/users/outsider`)).status).toBe(404);
    expect((await lead.request(`${admin}/users/nobody-here`)).status).toBe(404);
    expect((await lead.request(`${admin}/lockouts`)).status).toBe(403);
    expect((await lead.request(`${admin}/new-users`)).status).toBe(403);
    expect((await lead.request(`${admin}/services`)).status).toBe(403);

    const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const act = (path: string, values: Record<string, string> = {}) =>
      lead.request(admin + path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ _csrf: csrf, ...values }).toString(),
      });
    // Not to make an administrator, and not to take over or remove one who is in the group.
    expect((await act('/users/member/admin', { admin: 'true' })).status).toBe(403);
    for (const path of [
      '/users/ada/admin',
      '/users/ada/invitation',
      '/users/ada/remove-second-factor',
    ]) {
      expect([path, (await act(path, { admin: 'false' })).status]).toEqual([path, 403]);
    }
    expect((await act('/users/ada/delete', { confirmation: 'ada' })).status).toBe(403);
    expect((await act('/users/outsider/invitation')).status).toBe(404);
    expect((await act('/users/member/invitation')).status).toBe(303);
    expect((await act('/users/member/delete', { confirmation: 'member' })).status).toBe(303);
  });
});
