import { describe, expect, test } from 'vitest';
import { adminPageLayout as layout, shownAt as now } from '../../../../test/support/page-layout.ts';
import { sampleLoad } from '../../../../test/support/sample-pages.ts';
import { readUsersQuery, type UsersQuery } from '../../../operations/users-query.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { invitationLinksPage } from './new-users-page.ts';
import { type AdminUserView, adminUserPage } from './user-page.ts';
import { type UserRightsView, userRights } from './user-rights.ts';
import { type AdminUsersView, adminUsersPage } from './users-page.ts';

describe('the list of users', () => {
  const row = {
    name: 'alice',
    isAdmin: false,

    isSuspended: false,
    createdAt: now,
    mayStart: true,
    mayStop: true,
    server: 'stopped',
    runningNamedServers: 0,
    leadsTo: 'user',
  } as const;
  const query: UsersQuery = readUsersQuery(new URLSearchParams());
  const counts = {
    all: 9,
    running: 5,
    starting: 0,
    failed: 3,
    never_active: 2,
    administrator: 1,
    suspended: 0,
    invited: 0,
    invitation_expiring: 0,
    invitation_expired: 0,
  };
  const users = (view: Partial<AdminUsersView>, asked: Partial<UsersQuery> = {}): string =>
    String(
      adminUsersPage({
        layout,
        query: { ...query, ...asked },
        users: [row],
        total: 1,
        borders: { first: undefined, last: undefined },
        counts,
        acts: [{ name: 'start', label: 'Start the servers of' }],
        mayAdd: true,
        known: { account: true, activity: true, groups: true, servers: true },
        ...view,
      }),
    );

  test('leads to the neighbours of its own first and last row, and to both ends', () => {
    const edge = { side: 'after', key: 'ada' } as const;
    const part = (borders: AdminUsersView['borders'], asked: Partial<UsersQuery> = {}) =>
      users({ total: 1200, borders }, { size: 10, edge, search: 'a b', ...asked });
    const middle = part({ first: 'al', last: 'a&z' });
    const url = '/hub/admin/users?search=a+b&amp;size=10';
    expect(middle).toContain('1 of 1,200');
    expect(middle).toContain(`href="${url}">First</a>`);
    expect(middle).toContain(`href="${url}&amp;before=al" rel="prev"`);
    expect(middle).toContain(`href="${url}&amp;after=a%26z" rel="next"`);
    expect(middle).toContain(`href="${url}&amp;before=">Last</a>`);
    expect(middle).toContain('name="after" value="ada"');
    expect(middle).toContain(`value="${url}&amp;after=ada"`);
    // A search, an order and a size begin at the first page.
    expect(middle).not.toMatch(/(?:sort|show|size=25)[^"]*after=/);
    const last = part({ first: 'al', last: undefined });
    expect(last).toContain('rel="prev"');
    expect(last).not.toContain('rel="next"');
    const first = part({ first: undefined, last: 'alice' });
    expect(first).not.toContain('rel="prev"');
    expect(first).toContain('rel="next"');
  });

  test('says that a server that runs is paused', () => {
    const page = users({ users: [{ ...row, server: 'running', pausedAt: now }] });
    expect(page).toContain('<span class="status ">Paused</span>');
  });

  test('has no paging when all users fit', () => {
    expect(users({})).not.toContain('rel="next"');
    expect(users({})).not.toContain('rel="prev"');
  });

  test('sorts in either direction, from the first page', () => {
    const page = users({ total: 120 }, { edge: { side: 'after', key: 'x' } });
    expect(page).toContain('href="/hub/admin/users?sort=activity"');
    expect(page).toContain('href="/hub/admin/users?sort=-name"');
    expect(page).toContain('<th scope="col" aria-sort="ascending">');
    const latest = users({}, { sort: 'activity' });
    expect(latest).toContain('href="/hub/admin/users?sort=-activity"');
    expect(latest).toContain('aria-sort="descending"');
    expect(users({}, { sort: '-name' })).toContain('aria-sort="descending"');
    expect(page).toContain('href="/hub/admin/users?sort=server"');
    const running = users({}, { sort: 'server' });
    expect(running).toContain(
      'aria-sort="ascending"><a href="/hub/admin/users?sort=-server">Server</a>',
    );
    expect(users({}, { sort: '-server' })).toContain('aria-sort="descending"');
  });

  test('tells how many there are of each kind, and shows these with the same search', () => {
    const page = users({}, { search: 'x', group: 'staff', status: 'failed' });
    expect(page).toContain(
      'href="/hub/admin/users?search=x&amp;show=running&amp;group=staff">Running <b>5</b>',
    );
    expect(page).toContain('show=failed&amp;group=staff" aria-current="true">Failed <b>3</b>');
    expect(page).toContain('aria-label="Group staff: show any group"');
    expect(page).toContain('href="/hub/admin/users?search=x&amp;show=failed"');
  });

  test('reads from an address what can be, and nothing else', () => {
    const read = (text: string) => readUsersQuery(new URLSearchParams(text));
    expect(read('size=7&sort=;drop&show=all')).toEqual(query);
    expect(read('size=100&search=%20&group=')).toEqual({ ...query });
    expect(read('size=25&sort=-created&show=failed&group=a&search=b')).toEqual({
      size: 25,
      sort: '-created',
      status: 'failed',
      group: 'a',
      search: 'b',
    });
    expect(read('before=b').edge).toEqual({ side: 'before', key: 'b' });
    expect(read(`after=${'x'.repeat(301)}`)).toEqual(query);
    expect(read(`search=${'x'.repeat(999)}`).search).toHaveLength(255);
  });

  test('offers to tick users where something can be done with them', () => {
    expect(users({})).toContain('type="checkbox" name="user" value="alice"');
    expect(users({ acts: [] })).not.toContain('type="checkbox"');
  });

  test('opens a server that runs, and links the groups', () => {
    const page = users({ users: [{ ...row, openUrl: '/user/alice/', groups: ['a', 'b', 'c'] }] });
    expect(page).toContain('href="/user/alice/" aria-label="Open the server of alice"');
    expect(page).toContain('href="?group=a"');
    expect(page).toContain('<span class="soft" title="b, c">+ 2</span>');
  });

  test('has a line for each: the display name, else the address, and both where one of them was searched for', () => {
    const people = { users: [{ ...row, displayName: 'Alice L.', email: 'al@example.org' }] };
    expect(users(people)).toContain('<span class="under"><bdi>Alice L.</bdi></span>');
    expect(
      users({ users: [{ ...row, displayName: undefined, email: 'al@example.org' }] }),
    ).toContain('<span class="under">al@example.org</span>');
    expect(users(people, { search: 'al' })).toContain('<bdi>Alice L.</bdi> · al@example.org');
  });

  test('shows how busy a server was in a small plot and in figures', () => {
    const busy = { ...row, server: 'running', load: sampleLoad() } as const;
    const page = users({ users: [busy, { ...row, name: 'bob' }] });
    expect(page.match(/<svg class="spark"/g)).toHaveLength(2);
    expect(page).toMatch(/CPU <b>[\d.]+ %<\/b>/);
    expect(page).toMatch(/<title>Memory, the last hour: at most [\d.]+ [MG]B, on average/);
    expect(users({})).not.toContain('sparks');
  });

  test('starts what is stopped and stops what runs', () => {
    expect(users({})).toContain('aria-label="Start the server of alice"');
    const running = users({ users: [{ ...row, server: 'running' }] });
    expect(running).toContain('formaction="/hub/stop/alice"');
    expect(users({ users: [{ ...row, server: 'stopping' }] })).not.toContain('the server of alice');
  });

  test('offers what may be done with each server', () => {
    const may = { mayStart: false, mayStop: false };
    expect(users({ users: [{ ...row, ...may }] })).not.toContain('the server of alice');
    expect(users({ users: [{ ...row, ...may, server: 'running' }] })).not.toContain('/hub/stop/');
  });

  test('encodes a name in its address', () => {
    expect(users({ users: [{ ...row, name: 'a/b c@d' }] })).toContain(
      'href="/hub/admin/users/a%2Fb%20c@d"',
    );
  });

  test('comes back to the same place after a server was started or stopped', () => {
    expect(
      users({ total: 120 }, { edge: { side: 'after', key: '5,b' }, search: 'a', sort: 'activity' }),
    ).toContain(
      'name="return_to" value="/hub/admin/users?search=a&amp;sort=activity&amp;after=5%2Cb"',
    );
  });

  test('offers to add users to those who may', () => {
    expect(users({})).toContain('Add users');
    expect(users({ mayAdd: false })).not.toContain('Add users');
  });

  test('shows the parts of the administration that the user may see', () => {
    const partly = { ...layout, user: { ...layout.user, adminTabs: ['users', 'services'] } };
    const page = users({ layout: partly as FormLayoutProps });
    expect(page).toContain('href="/hub/admin/services"');
    expect(page).not.toContain('href="/hub/admin/lockouts"');
    expect(users({})).toContain('href="/hub/admin/lockouts"');
  });

  test('says when no user is found', () => {
    expect(users({ users: [], total: 0 }, { search: 'zz' })).toContain('contains “zz”');
  });
});

describe('one user', () => {
  const user = (view: Partial<AdminUserView>): string =>
    String(
      adminUserPage({
        layout,
        tab: 'overview',
        tabs: ['overview', 'access'],
        user: { name: 'bob', isAdmin: false, isSuspended: false, createdAt: now },
        rights: { mayAddToGroup: false, giveAccessUrl: undefined, mayRevoke: false },
        identities: [],
        servers: [],
        password: 'none',
        hasSecondFactor: false,
        isSelf: false,
        may: { change: true, delete: true, endSessions: true },
        ...view,
      }),
    );

  test('gets an invitation before the first password and a reset link after it', () => {
    expect(user({})).toContain('Make invitation link');
    expect(user({ password: 'set' })).toContain('Make password-reset link');
    expect(user({ password: undefined })).not.toContain('/invitation"');
  });

  test('folds the form for what others read of them away until it is wanted, and keeps what was typed', () => {
    const profile = {
      displayName: 'Bob',
      email: undefined,
      isEmailVerified: true,
      providedBy: undefined,
    };
    expect(user({ profile })).toMatch(/<details class="more"><summary>Change display name/);
    const typed = {
      displayName: 'Bobby',
      email: 'bob',
      pictureUrl: '',
      problem: 'Not an address.',
    };
    const page = user({ profile: { ...profile, typed } });
    expect(page).toMatch(/<details class="more" open>[\s\S]*Not an address\.[\s\S]*value="Bobby"/);
  });

  test('has servers with how busy each was in a small plot and in figures', () => {
    const server = { userName: 'bob', name: '', state: 'running', url: '/user/bob/' } as const;
    const page = user({
      servers: [
        { ...server, load: sampleLoad() },
        { ...server, name: 'b' },
      ],
    });
    expect(page.match(/<svg class="spark"/g)).toHaveLength(2);
    expect(page).toMatch(/Memory <b>[\d.]+ [MG]B<\/b>/);
  });

  test('has servers that are opened from there, while they run and where the viewer may', () => {
    const server = { userName: 'bob', name: '', state: 'running', url: '/user/bob/' } as const;
    const open = 'href="/user/bob/" aria-label="Open the default server"';
    expect(user({ servers: [{ ...server, mayOpen: true }] })).toContain(open);
    expect(user({ servers: [{ ...server, mayOpen: false }] })).not.toContain(open);
    expect(user({ servers: [{ ...server, mayOpen: true, state: 'stopped' }] })).not.toContain(open);
  });

  test('has parts, each with an address, of which one is shown', () => {
    const [nav = ''] =
      /<nav class="tabs" aria-label="Parts[\s\S]*?<\/nav>/.exec(user({ tab: 'access' })) ?? [];
    expect(
      [...nav.matchAll(/href="([^"]+)"( aria-current="page")?/g)].map(([, ...link]) => link),
    ).toEqual([
      ['/hub/admin/users/bob', undefined],
      ['/hub/admin/users/bob?tab=access', ' aria-current="page"'],
    ]);
    expect(user({})).toContain('id="servers"');
    expect(user({ tab: 'access' })).not.toContain('id="servers"');
  });

  test('is deleted only after a page that asks', () => {
    expect(user({})).toContain('href="/hub/admin/users/bob/delete"');
    expect(user({})).not.toContain('action="/hub/admin/users/bob/delete"');
  });

  test('does not lose the own rights', () => {
    const own = user({ isSelf: true });
    expect(own).not.toContain('/delete"');
    expect(own).not.toContain('name="admin"');
  });

  test('becomes or stops being an administrator', () => {
    // Only after a page that asks.
    expect(user({})).toContain('href="/hub/admin/users/bob/admin"');
    expect(user({})).not.toContain('name="admin"');
    expect(
      user({
        user: { name: 'bob', isAdmin: true, isSuspended: false, createdAt: now },
      }),
    ).toContain('name="admin" value="false"');
  });
});

test('an invitation link is shown with how long it works', () => {
  const links = [{ userName: 'bob', url: 'https://hub.example.org/hub/invitation?secret=x' }];
  const page = String(
    invitationLinksPage({ layout, purpose: 'invitation', links, lifetimeSeconds: 172_800 }),
  );
  expect(page).toContain('https://hub.example.org/hub/invitation?secret=x');
  expect(page).toContain('for 2 days');
});

test('a user’s page says through which group and provider a role is held', () => {
  const view: UserRightsView = {
    groups: [{ name: 'teachers', origin: 'github', mayRemove: false }],
    mayAddToGroup: false,
    roles: [
      {
        name: 'course-lead',
        reasons: [{ kind: 'group', groupName: 'teachers', memberOrigin: 'github' }],
        allows: [
          {
            scope: 'start:servers!group=statistics-101',
            description: 'Start servers.',
            restriction: 'only group statistics-101',
          },
        ],
        mayTakeAway: false,
      },
    ],
    giveAccessUrl: undefined,
    mayRevoke: false,
    tokens: { shown: [{ id: 't1', title: 'Nightly', may: [], createdAt: now }], total: 51 },
  };
  const page = String(userRights(layout, 'bob', view));
  expect(page).toContain('Through the group <a href="/hub/admin/groups/teachers">teachers</a>');
  expect(page).toContain('in which github put this user');
  expect(page).toContain('Start servers. <span class="soft">(only group statistics-101)</span>');
  expect(page).toContain('The 1 newest of 51.');
  expect(page).not.toContain('revoke-token');
  expect(page).not.toContain('remove-from-group');
});

test('many links are one text to copy and a file, beside a table as long as that is short', () => {
  const links = Array.from({ length: 500 }, (_, index) => ({
    userName: `somebody-${index}@university.example.org`,
    url: `https://hub.example.org/hub/invitation?secret=${'x'.repeat(43)}`,
  }));
  const show = (shown: typeof links) =>
    String(
      invitationLinksPage({ layout, purpose: 'invitation', links: shown, lifetimeSeconds: 60 }),
    );
  const few = show(links.slice(0, 2));
  expect(few).toContain('data-copy="link-1"');
  expect(few).toContain('action="/hub/admin/links.csv"');
  const many = show(links);
  expect(many).toContain('All 500 links');
  expect(many).toContain('data-copy="all-links"');
  expect(Buffer.byteLength(many)).toBeLessThan(80 * 1024);
});

test('who is left out of the links is told', () => {
  const view = { layout, purpose: 'reset', links: [], lifetimeSeconds: 60 } as const;
  const page = String(invitationLinksPage({ ...view, problems: ['eve: This is forbidden.'] }));
  expect(page).toContain('No link for 1 user: eve: This is forbidden.');
});
