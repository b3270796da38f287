import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { adminPageLayout as layout, shownAt as now } from '../../../../test/support/page-layout.ts';
import type { BatchReport } from '../../../identity/accounts/batches.ts';
import { endpointsOf } from '../../../identity/oauth/endpoints/metadata-endpoint.ts';
import { emptyMembership } from '../../../identity/rbac/membership.ts';
import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { serviceDefinition } from '../../../workloads/services/runtime-service.ts';
import { createService } from '../../../workloads/services/service.ts';
import type { PlacedStatus } from '../../../workloads/services/service-status.ts';
import type { PagingView } from '../elements/table.ts';
import { adminTabsOf } from '../page-context.ts';
import { batchPage } from './batch-page.ts';
import { clientFacts, clientRecipes, clientValues } from './client-setup.ts';
import { adminGroupPage } from './groups-page.ts';
import { lockoutsPage } from './lockouts-page.ts';
import { type AdminServiceView, adminServicePage } from './service-page.ts';
import { adminServicesPage } from './services-page.ts';

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
  const list = (more: Partial<PlacedStatus>, load?: LoadSeries): string =>
    String(
      adminServicesPage({
        layout,
        mayAdd: false,
        query: { search: '', group: undefined, show: undefined },
        total: 1,
        borders: { first: undefined, last: undefined },
        size: 25,
        counts: { all: 1, ready: 0, starting: 0, unhealthy: 0, crash_looping: 1, stopped: 0 },
        services: [{ url: '/services/gallery/', load, status: { ...status, ...more } }],
      }),
    );
  const endpoints = endpointsOf(new URL('https://hub.example.org/'));
  const place = { apiToken: undefined, basePath: '/', directory: '/srv' };
  const serviceOf = (definition: object) =>
    createService({ name: 'gallery', ...serviceDefinition.parse(definition) }, place);
  const managed = serviceOf({ url: 'http://127.0.0.1:9', command: ['serve', '--port', '9'] });
  const one = (more: Partial<PlacedStatus>, view: Partial<AdminServiceView> = {}): string =>
    String(
      adminServicePage({
        layout,
        service: managed,
        endpoints,
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
      '17 restarts',
      'It ended 5 times',
    ]) {
      expect(page).toContain(text);
    }
    expect(list(well)).toContain('150 %');
    expect(list(well)).not.toContain('It ended 5 times');
  });

  test('one that the hub does not run shows for how long it answers, and how fast', () => {
    const since = new Date(now.getTime() - 3 * 3_600_000);
    const responseSeconds = [null, 0.25];
    const none = [null, null];
    const figures = {
      cpuCores: none,
      memoryBytes: none,
      requestsPerSecond: [null, 2],
      responseSeconds,
      webSockets: none,
    };
    const external = {
      ...status,
      kind: 'external',
      state: 'ready',
      isReady: true,
      since,
      restarts: 0,
      usage: undefined,
    } as const;
    const page = list(external, { stepSeconds: 10, figures });
    expect(page).toContain('Up for 3 hours');
    expect(page).toContain('Response time <b>250 ms</b>');
    expect(page).not.toContain('Memory');
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

  test.each(clientRecipes)('the how-to shows for $app what the page does', (recipe) => {
    const page = readFileSync('docs/how-to/log-other-apps-in.md', 'utf8');
    const documented = page.split(`### ${recipe.app}\n`)[1] ?? '';
    const uri = /https:[^`\s]+/.exec(documented)?.[0] ?? '';
    expect(uri).toContain(recipe.callback);
    const [, configuration = ''] = /```\w+\n(.*?)```/s.exec(documented) ?? [];
    const client = { clientId: URL.parse(uri)?.hostname.split('.')[0] ?? '', redirectUris: [uri] };
    expect(configuration).toBe(recipe.configuration(clientValues(client, recipe, endpoints)));
  });

  test('one that logs its visitors in itself says what the app is configured with', () => {
    const uri = 'https://dash.example.org/sub/login/generic_oauth';
    const page = (more: object) =>
      one({}, { service: serviceOf({ oauth_redirect_uri: uri, ...more }) });
    expect(page({})).toContain('client_id = service-gallery\n');
    expect(page({})).toContain(
      'add the app&#39;s redirect URI to the service, such as https://dash.example.org/auth/callback',
    );
    expect(page({})).not.toContain('such as https://dash.example.org/login/generic_oauth');
    const isPublic = page({ oauth_public: true });
    expect(isPublic).toContain(`redirect URI: ${uri}\n`);
    for (const text of ['client secret', 'GitLab']) expect(isPublic).not.toContain(text);
    expect(page({ access: 'gateway' })).not.toContain('issuer:');
  });

  test('what any app asks for is in the how-to, too', () => {
    const client = {
      oauth_client_id: 'app',
      oauth_redirect_uri: 'https://app.example.org/callback',
    };
    expect(readFileSync('docs/how-to/log-other-apps-in.md', 'utf8')).toContain(
      `\`\`\`text\n${clientFacts(serviceOf(client), endpoints)}\`\`\``,
    );
  });

  test('one that runs elsewhere cannot be restarted', () => {
    expect(one({ kind: 'external' }, { service: serviceOf({}) })).not.toContain('/restart"');
    expect(one({})).toContain('action="/hub/admin/services/gallery/restart"');
    expect(one({}, { may: { run: false, edit: false, delete: false } })).not.toContain('/restart"');
  });
});

const groupPages: PagingView = {
  edge: { side: 'after', key: 'ada' },
  total: 140,
  shown: 1,
  borders: { first: 'alice', last: undefined },
  urlOf: () => '?',
};

test('a member of a group is removed by name, and the list stays where it is', () => {
  const page = String(
    adminGroupPage({
      layout,
      group: { name: 'staff', origin: 'api', properties: { room: { floor: 3 } } },
      members: [{ name: 'alice', origin: 'github' }],
      search: 'al',
      paging: groupPages,
      roles: [
        { name: 'reader', description: 'Reads.', scopes: [], origin: 'api', mayTakeAway: false },
      ],
      may: { changeMembers: true, delete: true, listUsers: true },
    }),
  );
  expect(page).toContain('action="/hub/admin/groups/staff/remove-member"');
  expect(page).toContain('name="name" value="alice"');
  expect(page).toContain('name="search" value="al"');
  expect(page).toContain('name="after" value="ada"');
  expect(page).toContain('1 of 140');
  expect(page).toContain('href="/hub/admin/users?group=staff"');
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
      paging: { ...groupPages, total: 1, borders: { first: undefined, last: undefined } },
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
  const tabsOf = (...scopes: string[]) =>
    adminTabsOf({ owner: { kind: 'user', name: 'ada' }, scopes: new Set(scopes) }, emptyMembership);
  expect(tabsOf('list:users!group=staff', 'read:hub')).toEqual([
    'overview',
    'users',
    'servers',
    'usage',
    'instances',
  ]);
  expect(tabsOf('read:audit', 'list:services', 'admin:users!user=bob')).toEqual([
    'overview',
    'services',
    'activity',
  ]);
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
    returnTo: '/hub/admin/users?show=failed',
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
    expect(over).toContain('href="/hub/admin/users?show=failed"');
  });

  test('says when it did not come to its end', () => {
    expect(page({ finishedAt: 1, isCutShort: true })).toContain('The hub stopped before');
  });
});
