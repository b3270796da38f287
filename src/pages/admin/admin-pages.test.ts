import { describe, expect, test } from 'vitest';
import type { BatchReport } from '../../accounts/batches.ts';
import { serviceDefinition } from '../../services/runtime-service.ts';
import { createService } from '../../services/service.ts';
import type { PlacedStatus } from '../../services/service-status.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { createPageUrls } from '../page-urls.ts';
import { adminTabsOf } from './admin-tabs.ts';
import { batchPage } from './batch-page.ts';
import { adminGroupPage } from './groups-page.ts';
import { lockoutsPage } from './lockouts-page.ts';
import { invitationLinksPage, newUsersPage } from './new-users-page.ts';
import { type AdminServiceView, adminServicePage } from './service-page.ts';
import { adminServicesPage } from './services-page.ts';
import { type AdminUserView, adminUserPage } from './user-page.ts';
import { type UserRightsView, userRights } from './user-rights.ts';
import { type AdminUsersView, adminUsersPage } from './users-page.ts';
import { readUsersQuery, type UsersQuery } from './users-query.ts';

const now = new Date('2026-11-20T10:00:00Z');
const layout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now,
  csrfToken: 'csrf-token',
  user: { name: 'root', mayAdminister: true },
};

describe('the list of users', () => {
  const row = {
    name: 'alice',
    isAdmin: false,
    isInvited: false,
    createdAt: now,
    mayStart: true,
    mayStop: true,
    server: 'stopped',
    runningNamedServers: 0,
  } as const;
  const query: UsersQuery = readUsersQuery(new URLSearchParams());
  const counts = { all: 9, running: 5, starting: 0, failed: 3, never_active: 2, administrator: 1 };
  const users = (view: Partial<AdminUsersView>, asked: Partial<UsersQuery> = {}): string =>
    String(
      adminUsersPage({
        layout,
        query: { ...query, ...asked },
        users: [row],
        total: 1,
        counts,
        acts: [{ name: 'start', label: 'Start the servers of' }],
        mayAdd: true,
        ...view,
      }),
    );

  test('pages through a long list and keeps search and order', () => {
    const page = users({ total: 1200 }, { page: 12, search: 'a b', sort: '-activity' });
    expect(page).toContain('551–551 of 1,200');
    const url = '/hub/admin?search=a+b&amp;sort=-activity';
    expect(page).toContain(`href="${url}&amp;page=11" rel="prev"`);
    expect(page).toContain(`href="${url}&amp;page=13" rel="next"`);
    // The first, the last and those nearby.
    const offered = [...page.matchAll(/aria-label="Page (\d+)"/g)].map(([, number]) => number);
    expect(offered).toEqual(['1', '10', '11', '12', '13', '14', '24']);
    expect(page).toContain('aria-label="Page 12" aria-current="page"');
    expect(page).toContain(`href="${url}&amp;size=25"`);
  });

  test('has no paging when all users fit', () => {
    expect(users({})).not.toContain('rel="next"');
    expect(users({})).not.toContain('rel="prev"');
  });

  test('sorts in either direction, from the first page', () => {
    const page = users({ total: 120 }, { page: 2 });
    expect(page).toContain('href="/hub/admin?sort=activity"');
    expect(page).toContain('href="/hub/admin?sort=-name"');
    expect(page).toContain('<th scope="col" aria-sort="ascending">');
    const latest = users({}, { sort: 'activity' });
    expect(latest).toContain('href="/hub/admin?sort=-activity"');
    expect(latest).toContain('aria-sort="descending"');
    expect(users({}, { sort: '-name' })).toContain('aria-sort="descending"');
  });

  test('tells how many there are of each kind, and shows these with the same search', () => {
    const page = users({}, { search: 'x', group: 'staff', mark: 'failed', page: 3 });
    expect(page).toContain(
      'href="/hub/admin?search=x&amp;show=running&amp;group=staff">Running <b>5</b>',
    );
    expect(page).toContain('show=failed&amp;group=staff" aria-current="true">Failed <b>3</b>');
    expect(page).toContain('aria-label="Group staff: show any group"');
    expect(page).toContain('href="/hub/admin?search=x&amp;show=failed"');
  });

  test('reads from an address what can be, and nothing else', () => {
    const read = (text: string) => readUsersQuery(new URLSearchParams(text));
    expect(read('page=0&size=7&sort=;drop&show=all')).toEqual(query);
    expect(read('page=-1&size=100&search=%20&group=')).toEqual({ ...query });
    expect(read('page=3&size=25&sort=-created&show=failed&group=a&search=b')).toEqual({
      page: 3,
      size: 25,
      sort: '-created',
      mark: 'failed',
      group: 'a',
      search: 'b',
    });
    expect(read(`search=${'x'.repeat(999)}`).search).toHaveLength(255);
  });

  test('offers to tick users where something can be done with them', () => {
    expect(users({})).toContain('type="checkbox" name="user" value="alice"');
    expect(users({ acts: [] })).not.toContain('type="checkbox"');
  });

  test('opens a server that runs, and links the groups', () => {
    const page = users({ users: [{ ...row, openUrl: '/user/alice/', groups: ['a', 'b', 'c'] }] });
    expect(page).toContain('href="/user/alice/" aria-label="Open the server of alice"');
    expect(page).toContain('href="/hub/admin?group=a"');
    expect(page).toContain('<span class="soft" title="c">+ 1</span>');
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
    expect(users({ total: 120 }, { page: 2, search: 'a', sort: 'activity' })).toContain(
      'name="return_to" value="/hub/admin?search=a&amp;sort=activity&amp;page=2"',
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
        user: { name: 'bob', isAdmin: false, isInvited: false, createdAt: now },
        rights: { mayAddToGroup: false, mayRevoke: false },
        identities: [],
        servers: [],
        sessions: [],
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
      user({ user: { name: 'bob', isAdmin: true, isInvited: false, createdAt: now } }),
    ).toContain('name="admin" value="false"');
  });
});

describe('services', () => {
  const status: PlacedStatus = {
    instance: 'hub-a',
    isHere: true,
    name: 'gallery',
    kind: 'managed',
    state: 'crash_looping',
    isReady: false,
    stopped: undefined,
    since: new Date(now.getTime() - 300_000),
    pid: undefined,
    startedAt: undefined,
    uptimeMs: undefined,
    nextStartAt: new Date(now.getTime() + 30_000),
    restarts: 17,
    lastExit: { code: null, signal: 'SIGKILL', leftBehind: 0, ranForMs: 5, at: now },
    lastError: 'It ended 5 times within a minute.',
    usage: undefined,
  };
  const well = {
    state: 'ready',
    isReady: true,
    usage: { cpuCores: 1.5, memoryBytes: 2_400_000_000, uptimeSeconds: 5, processes: 2 },
  } as const;
  const list = (more: Partial<PlacedStatus>): string =>
    String(
      adminServicesPage({
        layout,
        mayAdd: false,
        query: { search: '', group: undefined, show: undefined, page: 1 },
        total: 1,
        size: 25,
        counts: { all: 1, ready: 0, starting: 0, unhealthy: 0, crash_looping: 1, stopped: 0 },
        services: [{ url: '/services/gallery/', status: { ...status, ...more } }],
      }),
    );
  const place = { apiToken: undefined, basePath: '/', directory: '/srv' };
  const serviceOf = (definition: object) =>
    createService({ name: 'gallery', ...serviceDefinition.parse(definition) }, place);
  const managed = serviceOf({ url: 'http://127.0.0.1:9', command: ['serve', '--port', '9'] });
  const one = (more: Partial<PlacedStatus>, view: Partial<AdminServiceView> = {}): string =>
    String(
      adminServicePage({
        layout,
        service: managed,
        url: '/services/gallery/',
        may: { run: true, edit: false, delete: false },
        load: { series: undefined, silent: [] },
        span: 'hour',
        status: { ...status, ...more },
        ...view,
      }),
    );

  test('each is a row that leads to its page, and says since when it keeps failing', () => {
    const page = list({});
    for (const text of [
      'href="/hub/admin/services/gallery"',
      '1 service keeps failing',
      'Keeps failing',
      '5 minutes ago',
      '17',
      'It ended 5 times',
    ]) {
      expect(page).toContain(text);
    }
    expect(list(well)).toContain('150 %');
    expect(list(well)).not.toContain('It ended 5 times');
  });

  test('one shows how it ended, what it is and what it wrote, the newest last', () => {
    const page = one({}, { output: { url: '/hub/api/x', lines: ['first', 'last'] } });
    for (const text of ['signal SIGKILL', 'in less than a minute', 'serve --port 9', '/srv']) {
      expect(page).toContain(text);
    }
    expect(page).toContain('first\nlast</pre>');
    expect(page).toContain('href="/hub/api/x?download"');
    expect(one(well)).toContain('2.4 GB');
    expect(one(well)).not.toContain('It ended 5 times');
    expect(one(well)).not.toContain('data-output-url');
  });

  test('one that runs elsewhere cannot be restarted', () => {
    expect(one({ kind: 'external' }, { service: serviceOf({}) })).not.toContain('/restart"');
    expect(one({})).toContain('action="/hub/admin/services/gallery/restart"');
    expect(one({}, { may: { run: false, edit: false, delete: false } })).not.toContain('/restart"');
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

test('invitations are offered only where accounts have passwords', () => {
  expect(String(newUsersPage({ layout, canInvite: true }))).toContain('name="invite"');
  expect(String(newUsersPage({ layout, canInvite: false }))).not.toContain('name="invite"');
});

const groupPages = {
  page: 3,
  size: 50,
  total: 140,
  shown: 1,
  urlOf: (page: number) => `?page=${page}`,
};

test('a member of a group is removed by name, and the list stays where it is', () => {
  const page = String(
    adminGroupPage({
      layout,
      group: { name: 'staff', origin: 'api', properties: { room: { floor: 3 } } },
      members: [{ name: 'alice', origin: 'github' }],
      search: 'al',
      paging: groupPages,
      roles: [{ name: 'reader', description: 'Reads.' }],
      may: { changeMembers: true, delete: true, listUsers: true },
    }),
  );
  expect(page).toContain('action="/hub/admin/groups/staff/remove-member"');
  expect(page).toContain('name="name" value="alice"');
  expect(page).toContain('name="search" value="al"');
  expect(page).toContain('name="page" value="3"');
  expect(page).toContain('101–101 of 140');
  expect(page).toContain('href="/hub/admin?group=staff"');
  expect(page).toContain('href="/hub/admin/roles/reader"');
  expect(page).toContain('{&quot;floor&quot;:3}');
});

test('a group shows what may be done with it', () => {
  const page = String(
    adminGroupPage({
      layout,
      group: { name: 'staff', origin: 'api', properties: {} },
      members: [{ name: 'alice', origin: 'github' }],
      search: '',
      paging: { ...groupPages, page: 1, total: 1 },
      may: { changeMembers: false, delete: false, listUsers: false },
    }),
  );
  for (const word of [
    'remove-member',
    'add-members',
    'delete"',
    'Roles it gives',
    'role="search"',
  ]) {
    expect(page).not.toContain(word);
  }
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
      },
    ],
    mayRevoke: false,
    tokens: { shown: [{ id: 't1', title: 'Nightly', scopes: [], createdAt: now }], total: 51 },
  };
  const page = String(userRights(layout, 'bob', view));
  expect(page).toContain('Through the group <a href="/hub/admin/groups/teachers">teachers</a>');
  expect(page).toContain('in which github put this user');
  expect(page).toContain('Start servers. <span class="soft">(only group statistics-101)</span>');
  expect(page).toContain('The 1 newest of 51.');
  expect(page).not.toContain('revoke-token');
  expect(page).not.toContain('remove-from-group');
});

test('a lock-out is lifted by what it is about', () => {
  const record = {
    kind: 'address',
    subject: '192.0.2.1',
    failures: 9,
    lastFailureAt: now.getTime(),
    lockedUntil: now.getTime() + 300_000,
  } as const;
  const page = String(lockoutsPage({ layout, lockouts: [record] }));
  expect(page).toContain('name="kind" value="address"');
  expect(page).toContain('name="subject" value="192.0.2.1"');
  expect(page).toContain('in 5 minutes');
});

test('a part of the administration is offered to those who may see some of it', () => {
  expect(adminTabsOf(new Set(['list:users!group=staff', 'read:hub']))).toEqual([
    'users',
    'instances',
  ]);
  expect(adminTabsOf(new Set(['read:audit', 'list:services', 'admin:users!user=bob']))).toEqual([
    'services',
    'activity',
  ]);
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

describe('work for many users', () => {
  const report: BatchReport = {
    id: 'b1',
    by: 'root-id',
    total: 1000,
    done: 400,
    failed: 2,
    problems: [{ name: 'bob', message: 'It broke.' }],
    startedAt: now.getTime() - 60_000,
    updatedAt: now.getTime(),
    isCutShort: false,
    title: 'Delete 1,000 users',
    returnTo: '/hub/admin?show=failed',
  };
  const page = (more: Partial<BatchReport>) =>
    String(batchPage({ layout, report: { ...report, ...more } }));

  test('is followed until it is over', () => {
    expect(page({})).toContain('value="402"');
    expect(page({})).toContain('data-live-seconds="2"');
    expect(page({})).toContain('http-equiv="refresh"');
    expect(page({})).toContain('And 1 more.');
    const over = page({ finishedAt: now.getTime() });
    expect(over).not.toContain('http-equiv="refresh"');
    expect(over).toContain('Finished, but not for all.');
    expect(over).toContain('href="/hub/admin?show=failed"');
  });

  test('says when it did not come to its end', () => {
    expect(page({ finishedAt: 1, isCutShort: true })).toContain('The hub stopped before');
  });
});
