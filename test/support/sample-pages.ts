import type { Instance } from '../../src/cluster/instances/instance.ts';
import { accountPage } from '../../src/entrances/pages/account/account-page.ts';
import {
  recoveryCodesPage,
  secondFactorSetUpPage,
} from '../../src/entrances/pages/account/second-factor-pages.ts';
import { ownUsagePage } from '../../src/entrances/pages/account/usage-page.ts';
import { type AccessView, giveAccessPage } from '../../src/entrances/pages/admin/access-page.ts';
import { activityPage } from '../../src/entrances/pages/admin/activity-page.ts';
import {
  announcementsPage,
  maintenanceFacts,
} from '../../src/entrances/pages/admin/announcements-page.ts';
import { batchPage } from '../../src/entrances/pages/admin/batch-page.ts';
import { budgetsPage } from '../../src/entrances/pages/admin/budgets-page.ts';
import {
  adminGroupPropertiesPage,
  groupFacts,
} from '../../src/entrances/pages/admin/group-properties-page.ts';
import { adminGroupPage, adminGroupsPage } from '../../src/entrances/pages/admin/groups-page.ts';
import { homesPage } from '../../src/entrances/pages/admin/homes-page.ts';
import { instancesPage } from '../../src/entrances/pages/admin/instances-page.ts';
import { keysPage } from '../../src/entrances/pages/admin/keys-page.ts';
import { lockoutsPage } from '../../src/entrances/pages/admin/lockouts-page.ts';
import {
  invitationLinksPage,
  newUsersPage,
  newUsersPreviewPage,
} from '../../src/entrances/pages/admin/new-users-page.ts';
import { overviewPage } from '../../src/entrances/pages/admin/overview-page.ts';
import { adminRoleFormPage } from '../../src/entrances/pages/admin/role-form-page.ts';
import { adminRolePage, adminRolesPage } from '../../src/entrances/pages/admin/roles-page.ts';
import { serversPage } from '../../src/entrances/pages/admin/servers-page.ts';
import {
  adminServiceFormPage,
  newServicePage,
} from '../../src/entrances/pages/admin/service-form-page.ts';
import { headersFormOf } from '../../src/entrances/pages/admin/service-headers.ts';
import { limitsFormOf } from '../../src/entrances/pages/admin/service-limits.ts';
import { adminServicePage } from '../../src/entrances/pages/admin/service-page.ts';
import { adminServicesPage } from '../../src/entrances/pages/admin/services-page.ts';
import { usagePage } from '../../src/entrances/pages/admin/usage-page.ts';
import { adminUserPage } from '../../src/entrances/pages/admin/user-page.ts';
import { adminUsersPage } from '../../src/entrances/pages/admin/users-page.ts';
import { shownNotices } from '../../src/entrances/pages/announcements.ts';
import type { AssetUrls } from '../../src/entrances/pages/assets/assets.ts';
import { addressElement } from '../../src/entrances/pages/elements/address.ts';
import type { FormLayoutProps } from '../../src/entrances/pages/elements/layout-props.ts';
import { confirmPage } from '../../src/entrances/pages/errors/confirm-page.ts';
import { errorPage, notFoundPage } from '../../src/entrances/pages/errors/error-page.ts';
import { type Html, html } from '../../src/entrances/pages/html.ts';
import { choosePasswordPage } from '../../src/entrances/pages/login/choose-password-page.ts';
import { confirmLoginPage, goOnPage } from '../../src/entrances/pages/login/confirm-login-page.ts';
import { consentPage } from '../../src/entrances/pages/login/consent-page.ts';
import { deviceDonePage, devicePage } from '../../src/entrances/pages/login/device-page.ts';
import { interstitialPage } from '../../src/entrances/pages/login/interstitial-page.ts';
import { loggedOutPage } from '../../src/entrances/pages/login/logged-out-page.ts';
import { loginFailedPage } from '../../src/entrances/pages/login/login-failed-page.ts';
import { type LoginChoice, loginPage } from '../../src/entrances/pages/login/login-page.ts';
import { secondFactorPage } from '../../src/entrances/pages/login/second-factor-page.ts';
import { setUpSecondFactorPage } from '../../src/entrances/pages/login/set-up-second-factor-page.ts';
import { createPageUrls } from '../../src/entrances/pages/page-urls.ts';
import { searchPage } from '../../src/entrances/pages/search/search-page.ts';
import { homePage } from '../../src/entrances/pages/servers/home-page.ts';
import { notRunningPage } from '../../src/entrances/pages/servers/not-running-page.ts';
import { openServerPage } from '../../src/entrances/pages/servers/open-server-page.ts';
import { type ServerPageView, serverPage } from '../../src/entrances/pages/servers/server-page.ts';
import type {
  ServerSummary,
  ShownServerState,
} from '../../src/entrances/pages/servers/server-summary.ts';
import { spawnOptionsPage } from '../../src/entrances/pages/servers/spawn-options-page.ts';
import {
  spawnPendingPage,
  stopPendingPage,
} from '../../src/entrances/pages/servers/spawn-pending-page.ts';
import type { ServiceLink } from '../../src/entrances/pages/services/service-list.ts';
import { serviceUnavailablePage } from '../../src/entrances/pages/services/service-unavailable-page.ts';
import { servicesPage } from '../../src/entrances/pages/services/services-page.ts';
import { acceptSharePage } from '../../src/entrances/pages/sharing/accept-share-page.ts';
import { type ShareView, sharePage } from '../../src/entrances/pages/sharing/share-page.ts';
import { endpointsOf } from '../../src/identity/oauth/endpoints/metadata-endpoint.ts';
import { describeAccess } from '../../src/identity/rbac/role.ts';
import type { AuditEntry } from '../../src/platform/audit/audit-event.ts';
import type { LoadSeries } from '../../src/platform/metrics/load-history.ts';
import type { PageEdge } from '../../src/platform/store/page-edge.ts';
import { serviceDefinition } from '../../src/workloads/services/runtime-service.ts';
import { createService, type Service } from '../../src/workloads/services/service.ts';
import type { PlacedStatus } from '../../src/workloads/services/service-status.ts';
import { noUse } from '../../src/workloads/usage/count-use.ts';
import { sampleBranding } from './sample-branding.ts';

/** The moment at which every sample page is looked at. */
const sampleMonth = { month: '2026-01', from: Date.UTC(2026, 0), to: Date.UTC(2026, 1) };
const sumOfUse = {
  wallSeconds: 1_234_567,
  cpuSeconds: 345_678,
  gibSeconds: 4_567_890,
  gpuSeconds: 98_765,
  cost: 123.456,
};
const sampleBudgets = [
  ['course-a', 84, 'month'],
  ['guests', 12, '7d'],
].map(([name = '', used = 0, period = '']) => ({
  budget: {
    name: String(name),
    group: 'course',
    period: String(period),
    cpu_hours: 100,
    sharing: 'together' as const,
    when_over: 'stop' as const,
  },
  amount: 'cpu_hours' as const,
  used: Number(used),
  limit: 100,
  part: Number(used) / 100,
}));
const sampleUse = [0, 1, 2, 8, 30].map((day) => ({ at: Date.UTC(2026, 0, day + 1), ...sumOfUse }));

export const sampleNow = new Date('2026-11-20T10:00:00Z');

function sampleAccess(
  text: (sample: string) => string,
  filter: Parameters<typeof describeAccess>[1],
): AccessView {
  const role = {
    name: text('course-assistant.physics'),
    description: text(String(describeAccess('course-assistant', filter))),
    scopes: [],
    origin: 'api',
  };
  const entry = { roleName: role.name, role, subjectKind: 'user' } as const;
  return {
    entries: [
      {
        ...entry,
        subjectName: text('tim'),
        origin: 'api',
        isOfRuntime: true,
        mayTakeAway: true,
      },
      {
        ...entry,
        subjectName: text('eve'),
        origin: 'config',
        isOfRuntime: false,
        mayTakeAway: false,
      },
    ],
    isWhole: false,
    giveUrl: text('/hub/admin/give-access?group=physics'),
  };
}

function sampleService(text: (plausible: string) => string): Service {
  const definition = serviceDefinition.parse({
    url: 'http://127.0.0.1:8080',
    command: ['label-studio', 'start'],
    access: 'gateway',
  });
  const service = createService(
    { name: 'label-studio', ...definition },
    {
      apiToken: undefined,
      source: 'api',
      basePath: '/',
      directory: '/srv/label-studio',
    },
  );
  const { launch } = service;
  return {
    ...service,
    info: { title: text('Label Studio') },
    launch: launch && { ...launch, command: launch.command.map(text), user: text('labels') },
  };
}

function sampleInstance(name: string, changes: Partial<Instance> = {}): Instance {
  return {
    id: name,
    name,
    url: 'http://10.0.0.5:8080',
    host: 'node-5.example.org',
    machineId: 'node-5',
    process: { pid: 4_211, startTime: '1' },
    version: '0.1.0',
    basePath: '/',
    keyDigests: [],
    settingsDigest: 'same',
    startedAt: minutes(-9_000),
    leaseUntil: minutes(0.2),
    isLive: true,
    ...changes,
  };
}

/** An hour with a gap: a server that was stopped for a while. */
export function sampleLoad(): LoadSeries {
  const figures = (top: number) =>
    Array.from({ length: 360 }, (_, step) =>
      step > 150 && step < 200 ? null : (top * (2 + Math.sin(step / 9) + Math.sin(step / 31))) / 4,
    );
  return {
    stepSeconds: 10,
    figures: {
      cpuCores: figures(1.7),
      memoryBytes: figures(1.6e9),
      requestsPerSecond: figures(24),
      responseSeconds: figures(0.12),
      webSockets: figures(9),
    },
  };
}

const minutes = (count: number): Date => new Date(sampleNow.getTime() + count * 60_000);

/**
 * Every page with plausible content, by name. `text` stands in for each text that comes from outside
 * the source code, so that a test can make all of them hostile at once.
 */
export function samplePages(
  assets: AssetUrls,
  text: (plausible: string) => string = (plausible) => plausible,
): Readonly<Record<string, Html>> {
  const anonymous: FormLayoutProps = {
    hubTitle: text('Hub'),
    urls: createPageUrls('/'),
    assets,
    now: sampleNow,
    csrfToken: text('csrf-token'),
    languages: [
      { tag: 'de', name: text('Deutsch'), isCurrent: false },
      { tag: 'en', name: text('English'), isCurrent: true },
    ],
    address: text('/hub/home?page=2'),
    requestId: text('7d0f2c6e'),
  };
  const layout: FormLayoutProps = {
    ...anonymous,
    user: {
      name: text('alice'),
      displayName: text('Alice Liddell'),
      mayAdminister: true,
    },
  };
  const server = (state: ShownServerState, more: Partial<ServerSummary> = {}): ServerSummary => ({
    userName: text('alice'),
    name: '',
    state,
    url: text('/user/alice/'),
    lastActivityAt: minutes(-12),
    startedAt: state === 'running' ? minutes(-190) : undefined,
    stoppedAt: state === 'stopped' || state === 'failed' ? minutes(-9) : undefined,
    ...more,
  });
  const named = {
    userName: text('alice'),
    name: text('thesis'),
    displayName: text('Thesis, chapter two'),
  };

  const sharePaging = {
    total: 2,
    shown: 2,
    borders: { first: undefined, last: undefined },
    urlOf: (edge?: PageEdge) => text(`/hub/share/alice?before=${edge?.key}`),
  };
  const sharing: ShareView = {
    layout,
    ownerName: text('alice'),
    serverName: '',
    shares: [
      {
        recipient: { kind: 'user', name: text('bob') },
        scopeNames: ['access:servers'],
        createdAt: minutes(-200),
      },
      {
        recipient: { kind: 'group', name: text('class-101') },
        scopeNames: ['access:servers', 'read:servers', 'start:servers'],
        createdAt: minutes(-20_000),
      },
    ],
    paging: sharePaging,
    links: [
      {
        id: text('sc_1'),
        scopeNames: ['access:servers'],
        createdAt: minutes(-100),
        expiresAt: minutes(1_000),
        exchangeCount: 3,
        lastExchangedAt: minutes(-2),
      },
    ],
    connected: [text('bob')],
    displayNames: new Map([[text('bob'), text('Bob Builder')]]),
    levels: ['open', 'start'],
    recipients: ['user', 'group'],
  };
  const groupPaging = {
    total: 1_204,
    shown: 2,
    borders: { first: text('physics'), last: text('staff') },
    urlOf: (edge?: PageEdge) => text(`/hub/admin/groups?before=${edge?.key}`),
  };
  const passwordFields = [
    { name: 'username', label: text('User name'), type: 'text', autocomplete: 'username' },
    {
      name: 'password',
      label: text('Password'),
      type: 'password',
      autocomplete: 'current-password',
    },
  ] as const;
  const password: LoginChoice = {
    authenticator: text('password'),
    method: {
      kind: 'form',
      label: text('Log in'),
      fields: passwordFields,
    },
  };
  const external = (
    name: string,
    label: string,
    icon: 'github' | 'google' | 'keycloak',
  ): LoginChoice => ({
    authenticator: text(name),
    method: { kind: 'external', label: text(label), icon },
  });
  const services: readonly ServiceLink[] = [
    {
      name: text('notebook-gallery'),
      title: text('Notebook gallery'),
      description: text('Published notebooks of the whole group.'),
      group: text('Reading'),
      icon: { kind: 'image', url: text('/services/notebook-gallery/icon.png') },
      url: text('/services/notebook-gallery/'),
      state: 'ready',
    },
    {
      name: text('dashboards'),
      title: text('dashboards'),
      group: text('Reading'),
      icon: { kind: 'text', text: text('📈') },
      description: text('Live figures of the experiment.'),
      url: text('/services/dashboards/'),
      state: 'starting',
    },
    {
      name: text('wiki'),
      title: text('wiki'),
      url: text('/services/wiki/'),
      state: 'unhealthy',
      since: minutes(-12),
      contact: text('Grace, room 12'),
    },
    {
      name: text('label-studio'),
      title: text('Label Studio'),
      url: text('/services/label-studio/'),
      state: 'crash_looping',
    },
  ];
  const session = {
    userAgent: text('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'),
    address: text('192.0.2.17'),
  };
  const sessions = [
    {
      ...session,
      sessionId: text('s1'),
      authenticator: text('password'),
      createdAt: minutes(-3000),
      lastSeenAt: minutes(-1),
      isCurrent: true,
    },
    {
      ...session,
      sessionId: text('s2'),
      userAgent: text(
        'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1',
      ),
      address: text('2001:db8::8a2e:370:7334'),
      createdAt: minutes(-9000),
      lastSeenAt: minutes(-400),
      isCurrent: false,
    },
  ];
  const outputTail = [
    'Loading extensions',
    'Traceback (most recent call last):',
    '  File "/srv/app/serve.py", line 41, in main',
    'OSError: [Errno 28] No space left on device',
  ].map(text);
  const shownBudgets = sampleBudgets.map((state) => ({
    ...state,
    budget: { ...state.budget, name: text(state.budget.name) },
  }));
  const serverView: ServerPageView = {
    layout,
    server: server('running'),
    setup: {
      profile: text('Large'),
      options: [{ label: text('Folder'), value: text('/data') }],
      limits: { cpuCores: 2, memoryBytes: 2e9, processes: 512 },
    },
    place: [
      { label: text('Runs at'), value: text('hub-a') },
      { label: text('Container'), value: text('5f2c') },
      { label: text('Reached at'), value: addressElement('http://127.0.0.1:40745') },
    ],
    load: { series: sampleLoad(), silent: [text('hub-b')] },
    idleCores: 0.05,
    maxKeptSeconds: 86_400,
    homeSpace: { totalBytes: 10e9, freeBytes: 2e6 },
    span: 'hour',
    output: { url: text('/hub/api/users/alice/server/output'), lines: outputTail },
    hasSpawnOptions: false,
    hasLastOptions: true,
    may: { open: true, start: true, stop: true, share: true, extend: true },
  };
  const home = {
    layout,
    userName: text('alice'),
    hasSpawnOptions: false,
    services,
    namedServers: {
      limit: 5,
      servers: [
        server('running', named),
        server('stopped', { name: text('gpu'), lastActivityAt: undefined }),
        server('failed', { name: text('scratch'), failure: text('It ended with exit code 1.') }),
      ],
    },
  };
  const rules = { minimumLength: 10 };
  const tokens = [
    {
      id: 't1',
      note: text('Nightly report'),
      may: [
        {
          scope: text('inherit'),
          description: text('Do everything'),
          restriction: text('only group a'),
        },
      ],
      createdAt: minutes(-50_000),
      lastUsedAt: minutes(-600),
      expiresAt: minutes(80_000),
    },
    { id: 't2', note: '', may: [], createdAt: minutes(-700_000) },
    {
      id: 't3',
      note: text('Old laptop'),
      may: [],
      createdAt: minutes(-90_000),
      expiresAt: minutes(-10),
    },
  ];
  const lifetimes = [
    { value: '3600', label: text('1 hour') },
    { value: '604800', label: text('1 week') },
    { value: '', label: text('Until I revoke it') },
  ];
  const placed = {
    description: text('Open Notebook gallery as you'),
    restriction: text('only group staff'),
    risk: text('Reaches everything.'),
  };
  const tokenForm = {
    lifetimes,
    extents: ['everything', 'identify', 'servers', 'choose'],
    choices: {
      groups: [
        {
          group: 'services',
          choices: [
            {
              ...placed,
              scope: text('access:services!service=gallery'),
              group: 'services',
              parts: [],
            },
          ],
        },
        {
          group: 'people',
          choices: [
            {
              ...placed,
              scope: text('servers'),
              group: 'people',
              parts: [{ ...placed, scope: text('start:servers'), group: 'people', parts: [] }],
            },
          ],
        },
      ],
      reaches: ['', text('!group=staff')],
      reachKinds: ['user', 'group'],
    },
    isAdministrator: true,
    form: {
      note: text('Nightly report'),
      expires_in: '604800',
      may: 'choose',
      ticked: [text('start:servers')],
      reach: 'user',
      reachName: text('bob'),
      scopes: text('read:hub'),
      search: text('gallery'),
    },
  } as const;
  const part = (shown: number) => ({
    total: 60,
    shown,
    borders: { first: undefined, last: '5,token' },
    urlOf: (edge?: PageEdge) => `/hub/account?before=${edge?.key}#tokens`,
  });
  const tokenView = {
    tokens,
    form: tokenForm,
    pages: { tokens: part(3), clients: part(2) },
    clients: [
      {
        clientId: text('service-gallery'),
        name: text('Notebook gallery'),
        may: [],
        tokenCount: 3,
        firstAllowedAt: minutes(-9000),
        lastUsedAt: minutes(-30),
      },
      {
        clientId: text('hub-user-alice'),
        name: text('Your server'),
        may: [],
        tokenCount: 1,
        firstAllowedAt: minutes(-200),
      },
    ],
  };
  const invitation = {
    kind: 'invitation',
    secret: text('s3cret'),
    userName: text('bob'),
    invitedBy: text('alice'),
  } as const;
  const notRunning = {
    layout,
    server: server('stopped'),
    mayStart: true,
    hasSpawnOptions: false,
    next: text('/user/alice/lab'),
  };
  const failure = {
    message: text('The server ended with exit code 1.'),
    at: minutes(-2),
    output: outputTail,
  };
  const account = {
    activity: auditEntries(text),
    layout,
    userName: text('alice'),
    groups: [text('physics'), text('staff')],
    profile: {
      displayName: text('Alice Liddell'),
      shownPictureUrl: 'https://avatars.example.org/alice.png',
      email: text('alice@example.org'),
      providedBy: undefined,
      typed: { displayName: text('Alice'), problem: text('This name is too long.') },
    },
    password: { rules, tokens: { count: 0, isChosen: true } },
    identities: [
      {
        id: text('i1'),
        label: text('GitHub'),
        display: text('alice-l'),
        linkedAt: minutes(-90_000),
        mayUnlink: true,
      },
    ],
    linkable: [{ authenticator: text('google'), label: text('Google') }],
    secondFactor: { isOn: false, isRequired: false, recoveryCodesLeft: undefined },
    passkeys: { unusable: 'insecure' as const, suggestedName: '', passkeys: [] },
    sessions,
    tokens: tokenView,
  };
  const users = (
    [
      ['alice', true, 'running', 2],
      ['bob', false, 'stopped', 0],
      ['carol@physics.example.org', false, 'failed', 0],
      ['dinesh', false, 'starting', 0],
    ] as const
  ).map(([name, isAdmin, state, runningNamedServers], index) => ({
    name: text(name),
    displayName: index === 1 ? undefined : text('Alice Pleasance Liddell'),
    email: text('alice@example.org'),
    isAdmin,
    leadsTo: 'user' as const,
    invitation: ([undefined, 'sent', undefined, 'expired'] as const)[index],
    isSuspended: false,
    server: state,
    load: state === 'running' ? sampleLoad() : undefined,
    runningNamedServers,
    mayStart: true,
    mayStop: true,
    groups: name === 'alice' ? ['physics', 'staff', 'hpc'].map(text) : undefined,
    createdAt: minutes(-90_000 * (index + 1)),
    openUrl: state === 'running' ? text('/user/alice/') : undefined,
    lastActivityAt: name === 'bob' ? undefined : minutes(-12 * (index + 1) ** 4),
  }));
  const managed: PlacedStatus = {
    instance: text('hub-a'),
    isHere: true,
    name: text('notebook-gallery'),
    kind: 'managed',
    state: 'ready',
    isReady: true,
    stopped: undefined,
    since: minutes(-4000),
    pid: 4711,
    startedAt: minutes(-4000),
    uptimeMs: 4000 * 60_000,
    nextStartAt: undefined,
    restarts: 0,
    lastExit: undefined,
    lastError: undefined,
    usage: { cpuCores: 0.034, memoryBytes: 131_072_000, uptimeSeconds: 240_000, processes: 3 },
  };
  const failing: PlacedStatus = {
    ...managed,
    name: text('label-studio'),
    state: 'crash_looping',
    isReady: false,
    since: minutes(-12),
    restarts: 17,
    lastExit: { code: 1, signal: null, leftBehind: 0, ranForMs: 400, at: minutes(-1) },
    lastError: text('It ended 5 times within a minute.'),
    nextStartAt: minutes(0.4),
    pid: undefined,
    startedAt: undefined,
    usage: undefined,
  };

  const confirmation = {
    layout,
    userName: text('alice'),
    action: text('/hub/token'),
    fields: { pending_form: text('AbC') },
    cancelUrl: text('/hub/token'),
  };

  return {
    login: loginPage({
      layout: anonymous,
      choices: [password],
      passkeysOf: password.authenticator,
      next: text('/user/alice/'),
    }),
    'login-own-look': loginPage({
      layout: { ...anonymous, branding: sampleBranding(text) },
      choices: [password],
    }),
    'login-several': loginPage({
      layout: anonymous,
      choices: [
        external('google', 'Continue with Google', 'google'),
        external('github', 'Continue with GitHub', 'github'),
        password,
      ],
      error: text('Wrong user name or password.'),
      failedAuthenticator: text('password'),
      typed: new URLSearchParams({ username: text('alice') }),
    }),
    'login-external': loginPage({
      layout: anonymous,
      choices: [
        { ...external('sso', 'Log in with University SSO', 'keycloak'), isUnavailable: true },
        external('github', 'Continue with GitHub', 'github'),
      ],
    }),
    'login-wait': loginPage({ layout: anonymous, choices: [password], waitSeconds: 120 }),
    'confirm-password': confirmLoginPage({
      ...confirmation,
      confirmation: {
        kind: 'form',
        authenticator: 'password',
        ownsAccounts: true,
        method: { kind: 'form', label: text('Password'), fields: passwordFields },
      },
      problem: text('This is not your password.'),
    }),
    'confirm-directory': confirmLoginPage({
      ...confirmation,
      confirmation: {
        kind: 'form',
        authenticator: 'ldap',
        ownsAccounts: false,
        method: { kind: 'form', label: text('Directory'), fields: passwordFields },
      },
      waitSeconds: 40,
      typedName: text('Ada'),
    }),
    'confirm-code': confirmLoginPage({
      ...confirmation,
      confirmation: { kind: 'code', hasApp: true, takesPasskey: true },
    }),
    'confirm-recovery-code': confirmLoginPage({
      ...confirmation,
      confirmation: { kind: 'code', hasApp: false, takesPasskey: true },
    }),
    'confirm-passkey': confirmLoginPage({ ...confirmation, confirmation: { kind: 'passkey' } }),
    'confirm-external': confirmLoginPage({
      ...confirmation,
      confirmation: { kind: 'external', authenticator: 'oidc', provider: text('Example Login') },
    }),
    'confirm-go-on': goOnPage({
      layout,
      action: text('/hub/token'),
      fields: { pending_form: text('AbC') },
      cancelUrl: text('/hub/token'),
    }),
    'second-factor': secondFactorPage({
      layout: anonymous,
      next: text('/hub/home'),
      error: text('This code is not right.'),
      offers: { code: true, passkey: true, recoveryCode: true },
    }),
    'second-factor-passkey': secondFactorPage({
      layout: anonymous,
      next: text('/hub/home'),
      offers: { code: false, passkey: true, recoveryCode: true },
    }),
    'second-factor-recovery-code': secondFactorPage({
      layout: anonymous,
      isRecovery: true,
      offers: { code: false, passkey: true, recoveryCode: true },
    }),
    'logged-out': loggedOutPage({ layout: anonymous, provider: text('University SSO') }),
    leaving: interstitialPage({
      layout: anonymous,
      title: text('Logged out'),
      provider: text('University SSO'),
      message: text(
        'You are logged out here, and continue to University SSO to log out there too.',
      ),
      url: text('https://login.example.org/logout?id_token_hint=x'),
    }),
    'login-failed': loginFailedPage({
      layout: anonymous,
      title: text('The login provider does not answer'),
      message: text('University SSO does not answer at the moment, so no one can log in with it.'),
      hint: text('Wait a little and try again. If this keeps happening, tell your administrator.'),
      action: { label: text('Try again'), url: text('/hub/login/with/sso') },
      otherWays: text('/hub/login'),
    }),
    'set-up': choosePasswordPage({
      layout: anonymous,
      purpose: { kind: 'first-administrator', secret: text('s3cret'), name: text('admin') },
      rules,
      problems: {
        name: text('This name has a space in it.'),
        repeated: text('The two are not the same.'),
      },
    }),
    invitation: choosePasswordPage({ layout: anonymous, purpose: invitation, rules }),
    reset: choosePasswordPage({
      layout: anonymous,
      purpose: { ...invitation, kind: 'reset' },
      rules,
    }),
    'change-required': choosePasswordPage({
      layout: anonymous,
      purpose: { kind: 'required', userName: text('bob'), next: text('/hub/home') },
      rules,
      error: text('That is the password you already have.'),
    }),
    consentOfAgent: consentPage({
      layout,
      userName: text('alice'),
      action: text(
        '/hub/api/oauth2/authorize?client_id=https%3A%2F%2Fagents.example%2Fclient.json',
      ),
      consent: {
        clientName: text('Notebook agent'),
        clientKind: 'agent',
        agent: {
          host: text('agents.example'),
          resourceKind: 'server',
          resourceTitle: text('alice/lab'),
        },
        ownerUserName: undefined,
        redirectHost: text('127.0.0.1:33418'),
        scopes: [],
        leavesHub: true,
        exceedingOwn: [],
        isAdministration: false,
        grantedScopes: [text('access:servers!server=alice/lab')],
      },
    }),
    consent: consentPage({
      layout,
      userName: text('alice'),
      action: text('/hub/api/oauth2/authorize?client_id=service-gallery&state=abc'),
      consent: {
        clientName: text('Notebook gallery'),
        clientKind: 'service',
        ownerUserName: undefined,
        redirectHost: text('hub.example.org'),
        scopes: [
          {
            scope: text('access:services!service=gallery'),
            description: text('Open Notebook gallery as you'),
            restriction: undefined,
            group: 'services',
            risk: undefined,
          },
          {
            scope: text('read:users:name!user'),
            description: text('Know your user name'),
            restriction: undefined,
            group: 'account',
            risk: undefined,
          },
          {
            scope: text('servers!user'),
            description: text('Start and stop your servers'),
            restriction: undefined,
            group: 'servers',
            risk: undefined,
          },
        ],
        leavesHub: true,
        exceedingOwn: [
          {
            scope: text('delete:users'),
            description: text('Delete users'),
            restriction: text('only group course'),
            group: 'people',
            risk: text('Cannot be undone.'),
          },
        ],
        isAdministration: false,
        grantedScopes: [text('access:services!service=gallery'), text('servers!user')],
      },
    }),
    home: homePage({ ...home, server: server('running', { load: sampleLoad() }) }),
    'home-first-run': homePage({
      ...home,
      namedServers: undefined,
      server: server('stopped', { lastActivityAt: undefined }),
      firstRun: { configFile: text('/srv/hub/hub.config.json'), isHttps: false },
    }),
    'home-about-to-stop': homePage({
      ...home,
      limitWarningSeconds: 600,
      server: server('running', { comingStop: { at: minutes(8), reason: 'idle_timeout' } }),
      namedServers: {
        servers: [
          server('running', { ...named, comingStop: { at: minutes(4), reason: 'idle_timeout' } }),
          server('running', {
            name: text('gpu'),
            comingStop: { at: minutes(9), reason: 'max_age' },
          }),
          server('stopped', {
            name: text('old'),
            stoppedBy: { reason: 'max_age', seconds: 86_400 },
          }),
        ],
        limit: 5,
      },
    }),
    'home-stopped-at-limit': homePage({
      ...home,
      server: server('stopped', { stoppedBy: { reason: 'idle_timeout', seconds: 3600 } }),
    }),
    'home-sharing': homePage({
      ...home,
      mayShare: true,
      server: server('running'),
      shared: {
        isCut: true,
        servers: [
          {
            server: server('running', { userName: text('bob'), url: text('/user/bob/') }),
            scopeNames: ['access:servers', text('custom:grades:read')],
            groupNames: [],
            isOwnShare: true,
            mayOpen: true,
            mayStart: false,
          },
          {
            server: server('stopped', {
              userName: text('carol'),
              name: text('lab'),
              displayName: text('Lab course'),
            }),
            scopeNames: ['access:servers', 'start:servers'],
            groupNames: [text('class-101')],
            isOwnShare: false,
            mayOpen: true,
            mayStart: true,
          },
        ],
      },
    }),
    share: sharePage({
      ...sharing,
      newLink: text('https://hub.example.org/hub/accept-share?code=Zk3v0'),
    }),
    'share-problem': sharePage({
      ...sharing,
      serverName: text('thesis'),
      ownerName: text('bob'),
      paging: { ...sharePaging, total: 120, borders: { first: 'a', last: 'b' } },
      typed: { name: text('dora'), problem: text('There is no such user.') },
    }),
    'share-by-link': sharePage({
      ...sharing,
      recipients: [],
      shares: [],
      links: [],
      connected: [],
    }),
    'share-refused': sharePage({ ...sharing, levels: [], recipients: [] }),
    device: devicePage({ layout, userCode: text('WDJB-MJHT'), isUnknown: true }),
    'device-consent': consentPage({
      layout,
      userName: text('alice'),
      action: text('/hub/device'),
      device: {
        userCode: text('WDJB-MJHT'),
        address: text('2001:db8:85a3:8d3:1319:8a2e:370:7348'),
      },
      consent: {
        clientName: text('Notebook gallery'),
        clientKind: 'service',
        ownerUserName: undefined,
        redirectHost: '',
        leavesHub: false,
        scopes: [],
        exceedingOwn: [],
        isAdministration: false,
        grantedScopes: [text('read:users:name!user')],
      },
    }),
    'device-allowed': deviceDonePage(layout, { isAllowed: true }),
    'device-denied': deviceDonePage(layout, { isAllowed: false }),
    'accept-share': acceptSharePage({
      layout,
      ownerName: text('bob'),
      serverName: text('thesis'),
      scopeNames: ['access:servers'],
      isRunning: false,
      code: text('Zk3v0'),
      next: text('/user/bob/thesis/lab'),
    }),
    'server-running': serverPage({
      ...serverView,
      server: server('running', {
        ...named,
        userName: text('bob'),
        comingStop: { at: minutes(40), reason: 'idle_timeout' },
        keptUntil: minutes(40),
        isRescue: true,
      }),
    }),
    'server-paused': serverPage({
      ...serverView,
      server: server('running', { ...named, pausedAt: minutes(-95) }),
    }),
    'server-failed': serverPage({
      ...serverView,
      server: server('failed', { failure: text('The server ended with exit code 1.') }),
      span: 'day',
      load: { series: undefined, silent: [] },
      hasSpawnOptions: true,
      lastFailure: {
        message: text('The server ended with exit code 1.'),
        at: minutes(-4),
        output: outputTail,
      },
    }),
    'home-stopped': homePage({
      layout: { ...layout, user: { name: text('bob'), mayAdminister: false } },
      userName: text('bob'),
      hasSpawnOptions: true,
      startsAtLogin: false,
      services: [],
      server: server('stopped', { lastActivityAt: undefined }),
    }),
    'home-own-look': homePage({
      layout: { ...layout, branding: sampleBranding(text) },
      userName: text('alice'),
      hasSpawnOptions: true,
      services: [],
      server: server('stopped', { lastActivityAt: undefined }),
    }),
    'home-starting': homePage({
      ...home,
      namedServers: undefined,
      services: [],
      server: server('starting'),
    }),
    'home-failed': homePage({
      ...home,
      namedServers: {
        ...home.namedServers,
        problem: text('You already have a server of this name.'),
        typedName: text('thesis'),
      },
      server: server('failed', { failure: text('The server ended with exit code 1.') }),
    }),
    'home-nothing': homePage({
      layout,
      userName: text('alice'),
      hasSpawnOptions: false,
      services: [],
    }),
    search: searchPage({
      layout,
      search: text('thesis'),
      results: [
        {
          title: text('Thesis, chapter two'),
          kind: text('Server'),
          url: text('/user/alice/thesis/'),
        },
        {
          title: text('Alice Liddell'),
          kind: text('User alice'),
          url: text('/hub/admin/users/alice'),
        },
      ],
    }),
    'search-nothing': searchPage({ layout, search: text('nothing'), results: [] }),
    'spawn-options': spawnOptionsPage({
      layout,
      server: named,
      currency: '€',
      profiles: [
        {
          name: 'small',
          displayName: text('Small'),
          description: text('2 GB of memory. Right for most work.'),
          isDefault: true,
        },
        {
          name: 'large',
          displayName: text('Large'),
          description: text('32 GB of memory, for big data.'),
          prices: { server_hour: 1, cpu_hour: 0.04, gib_hour: 0.0005, gpu_hour: 2.5 },
        },
      ],
      form: {
        fields: [
          {
            name: 'folder',
            label: text('Folder'),
            type: 'text',
            help: text('Opens first.'),
            default: text('~'),
          },
          {
            name: 'hours',
            label: text('Hours until it stops'),
            type: 'number',
            required: true,
            min: 1,
            max: 24,
          },
          {
            name: 'image',
            label: text('Image'),
            type: 'select',
            choices: [
              { value: text('base'), label: text('Base') },
              { value: 'r', label: text('R') },
            ],
          },
          {
            name: 'gpu',
            label: text('With a GPU'),
            type: 'checkbox',
            help: text('You may have to wait for one.'),
          },
        ],
      },
      problems: { hours: text('Choose a number from 1 to 24.') },
      next: text('/user/alice/thesis/'),
    }),
    'spawn-pending': spawnPendingPage({
      layout,
      server: server('starting'),
      progress: 40,
      steps: [
        { message: text('Server requested') },
        { message: text('Preparing your home folder'), phase: 'pulling' },
        { message: text('Waiting for the server to answer') },
      ],
      since: new Date(sampleNow.getTime() - 8_000),
      usualMs: 12_345,
      output: {
        url: text('/hub/api/users/alice/server/output'),
        lines: [text('Pulling layer 3 of 12'), text('Loading extensions')],
      },
      eventsUrl: text('/hub/api/users/alice/server/progress'),
      readyUrl: text('/user/alice/lab'),
    }),
    'stop-pending': stopPendingPage({ layout, server: server('stopping') }),
    'not-running': notRunningPage(notRunning),
    'not-running-failed': notRunningPage({ ...notRunning, hasSpawnOptions: true, failure }),
    'not-running-other': notRunningPage({
      ...notRunning,
      server: { userName: text('bob'), name: '' },
      mayStart: false,
    }),
    services: servicesPage({
      layout,
      query: { search: '', group: undefined, show: undefined },
      services,
      total: 31,
      borders: { first: undefined, last: '24,gallery' },
      accessible: 31,
      groups: [
        [text('Reading'), 12],
        [text('Labs'), 4],
      ],
    }),
    'services-none': servicesPage({
      layout,
      query: { search: text('nothing'), group: text('Labs'), show: undefined },
      services: [],
      total: 0,
      borders: { first: undefined, last: undefined },
      accessible: 31,
      groups: [],
    }),
    'service-unavailable': serviceUnavailablePage({
      layout,
      serviceName: text('dashboards'),
      why: { kind: 'starting' },
      retryAfterSeconds: 2,
      url: text('/services/dashboards/x?y=1'),
    }),
    'service-stopped': serviceUnavailablePage({
      layout,
      serviceName: text('dashboards'),
      why: { kind: 'stopped', at: minutes(-200) },
      contact: text('The data team'),
      retryAfterSeconds: 15,
      url: text('/services/dashboards/x?y=1'),
    }),
    'service-silent': serviceUnavailablePage({
      layout,
      serviceName: text('dashboards'),
      why: { kind: 'silent', since: minutes(-12) },
      retryAfterSeconds: 15,
      url: text('/services/dashboards/x?y=1'),
    }),
    error: errorPage({
      layout,
      status: 500,
      message: text('Something went wrong inside the hub.'),
      hint: text('Try again; if it happens again, tell your administrator the id of this error.'),
      errorId: text('0b54d9b2-6f0c-4f6a-a9f5-3d9e0b4a0a51'),
      details: text('database is locked'),
    }),
    'error-own-look': errorPage({
      layout: { ...anonymous, branding: sampleBranding(text) },
      status: 502,
      message: text('The page behind the hub failed.'),
    }),
    forbidden: errorPage({
      layout,
      status: 403,
      message: text('You may not use the service label-studio.'),
    }),
    'too-many': errorPage({
      layout: anonymous,
      status: 429,
      message: text('Too many servers are starting.'),
      retryAfterSeconds: 20,
    }),
    'not-found': notFoundPage({ layout }),
    account: accountPage({
      ...account,
      layout: { ...layout, notice: { kind: 'good', text: text('That login has ended.') } },
    }),
    'account-new-token': accountPage({
      ...account,
      tokens: {
        ...tokenView,
        newToken: {
          token: text('hubt_4fQ0hVw3k0nO7W0yKxkq2pM1tq8sYv5dZb6'),
          note: text('Nightly report'),
        },
      },
    }),
    'account-protected': accountPage({
      ...account,
      tokens: {
        ...tokenView,
        opened: 'by hand',
        form: { ...tokenForm, problem: text('The scope "x" is unknown or malformed.') },
      },
      profile: {
        displayName: text('عبد الله'),
        email: text('alice@example.org'),
        providedBy: text('GitHub'),
      },
      password: {
        rules,
        tokens: { count: 3, isChosen: true },
        problems: { current: text('This is not your password.'), password: text('Too short.') },
      },
      secondFactor: { isOn: true, isRequired: false, recoveryCodesLeft: 3 },
      passkeys: {
        unusable: undefined,
        suggestedName: text('Firefox on Linux'),
        passkeys: [
          {
            id: 'cGFzc2tleQ',
            name: text('Laptop'),
            createdAt: new Date(layout.now.getTime() - 86_400_000 * 90),
            lastUsedAt: layout.now,
            verifiesUser: true,
            mayRemove: true,
          },
          {
            id: 'c2VjdXJpdHk',
            name: text('Security key'),
            createdAt: new Date(layout.now.getTime() - 86_400_000),
            lastUsedAt: undefined,
            verifiesUser: false,
            mayRemove: false,
          },
        ],
      },
      identities: account.identities.map((identity) => ({ ...identity, mayUnlink: false })),
    }),
    'login-set-up-second-factor': setUpSecondFactorPage({
      layout: anonymous,
      qr: {
        size: 25,
        data: Uint8Array.from({ length: 625 }, (_, index) => Number((index * index) % 7 < 3)),
      },
      secret: text('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'),
      state: 'x',
      takesPasskeys: true,
    }),
    'second-factor-set-up': secondFactorSetUpPage({
      layout,
      qr: {
        size: 25,
        data: Uint8Array.from({ length: 625 }, (_, index) => Number((index * index) % 7 < 3)),
      },
      secret: text('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'),
      state: 'x',
      problem: text('This code is not right. Is the clock of your phone set?'),
    }),
    'recovery-codes': recoveryCodesPage({
      layout,
      codes: ['k3fd-9wpa', '7hqz-m2xc', 'v8nt-4rje', 'p6yb-s5gu', 'd2la-0oki', 'x9mv-7ctn'].map(
        text,
      ),
      after: 'passkey',
    }),
    'admin-overview': overviewPage({
      layout,
      users: {
        counts: {
          all: 2400,
          running: 12,
          starting: 1,
          failed: 3,
          never_active: 1300,
          administrator: 2,
          suspended: 0,
          invited: 0,
          invitation_expiring: 0,
          invitation_expired: 0,
        },
        known: { account: true, activity: true, groups: true, servers: true },
      },
      services: [managed, failing],
      hub: {
        instances: [
          {
            instance: sampleInstance(text('hub-b'), {}),
            isHere: false,
            isUp: false,
            hasOtherSettings: false,
          },
        ],
        missingGateways: 1,
        backup: 'failed',
        problems: [text('timeout')],
      },
      servers: { active: 18, limit: 20 },
      lockouts: 2,
      maintenance: { text: '', since: minutes(-9) },
      latest: auditEntries(text),
    }),
    'admin-servers': serversPage({
      layout,
      query: { search: text('a'), sort: 'state' },
      servers: [
        { ...server('running', { load: sampleLoad() }), mayStop: true },
        { ...server('failed', { ...named, failure: text('It ended.') }), mayStop: true },
      ],
      total: 120,
      borders: { first: undefined, last: text('3,thesis/alice') },
      counts: { all: 120, failed: 1, unreachable: 0, starting: 1, running: 118, stopping: 0 },
      mayStopMany: true,
    }),
    'admin-overview-well': overviewPage({
      layout,
      users: undefined,
      services: [managed],
      hub: undefined,
      servers: undefined,
      lockouts: undefined,
      maintenance: undefined,
      latest: undefined,
    }),
    'admin-users': adminUsersPage({
      layout,
      query: {
        search: text('a'),
        status: 'failed',
        group: text('physics'),
        sort: 'name',
        size: 50,
      },
      users,
      total: 240,
      borders: { first: text('al'), last: text('amy') },
      counts: {
        all: 2400,
        running: 12,
        starting: 1,
        failed: 240,
        never_active: 1300,
        administrator: 2,
        suspended: 0,
        invited: 0,
        invitation_expiring: 0,
        invitation_expired: 0,
      },
      acts: [
        { name: 'start', label: text('Start the servers of') },
        { name: 'delete', label: text('Delete') },
      ],
      mayAdd: true,
      known: { account: true, activity: true, groups: true, servers: true },
    }),
    'admin-users-to-read': adminUsersPage({
      layout,
      query: { search: '', status: undefined, group: undefined, sort: 'name', size: 50 },
      users: users.map((user) => ({ ...user, mayStart: false, mayStop: false })),
      total: 4,
      borders: { first: undefined, last: undefined },
      counts: {
        all: 4,
        running: 1,
        starting: 1,
        failed: 1,
        never_active: 0,
        administrator: 1,
        suspended: 0,
        invited: 0,
        invitation_expiring: 0,
        invitation_expired: 0,
      },
      acts: [],
      mayAdd: false,
      known: { account: true, activity: true, groups: true, servers: true },
    }),
    'admin-batch': batchPage({
      layout,
      report: {
        id: text('b1'),
        by: text('id'),
        total: 1200,
        done: 340,
        failed: 2,
        problems: [{ name: text('bob'), message: text('The server is already running.') }],
        startedAt: minutes(-2).getTime(),
        updatedAt: sampleNow.getTime(),
        isCutShort: false,
        title: text('Start the servers of 1,200 users'),
        returnTo: text('/hub/admin/users?show=failed'),
      },
    }),
    'admin-import': batchPage({
      layout,
      report: {
        id: text('b2'),
        by: text('id'),
        total: 3,
        done: 2,
        failed: 1,
        problems: [{ name: text('bob'), message: text('This user exists already.') }],
        startedAt: minutes(-2).getTime(),
        updatedAt: sampleNow.getTime(),
        finishedAt: sampleNow.getTime(),
        isCutShort: false,
        title: text('Create 3 users'),
        returnTo: text('/hub/admin/users'),
      },
      followUp: {
        canInvite: true,
        isUndoable: true,
        made: [
          {
            name: text('carol'),
            email: text('c@example.org'),
            state: 'sent',
            expiresAt: minutes(9),
          },
          { name: text('dave'), email: undefined, state: 'none', expiresAt: undefined },
          { name: text('erin'), email: undefined, state: 'used', expiresAt: undefined },
        ],
      },
    }),
    'admin-user': adminUserPage({
      layout,
      tab: 'overview',
      tabs: ['overview', 'access', 'logins', 'activity'],
      user: {
        name: text('bob'),
        isAdmin: false,

        isSuspended: false,
        createdAt: minutes(-80_000),
        lastActivityAt: minutes(-3),
      },
      profile: {
        displayName: text('Bob Builder'),
        email: text('bob@example.org'),
        isEmailVerified: false,
        shownPictureUrl: 'https://avatars.example.org/bob.png',
        providedBy: undefined,
        typed: {
          displayName: text('Bob'),
          email: text('bob'),
          pictureUrl: text('http://bob'),
          problem: text('This is not an e-mail address, such as ada@example.org.'),
        },
      },
      rights: {
        groups: [{ name: text('physics'), origin: text('github'), mayRemove: true }],
        mayAddToGroup: true,
        roles: [
          { name: 'user', reasons: [{ kind: 'every user' }], allows: [], mayTakeAway: false },
          {
            name: text('course-lead'),
            reasons: [
              { kind: 'group', groupName: text('physics'), memberOrigin: text('github') },
              { kind: 'given', origin: text('api') },
            ],
            allows: [
              {
                scope: text('start:servers!group=statistics-101'),
                description: text('Start servers.'),
                restriction: text('only group statistics-101'),
              },
            ],
            mayTakeAway: true,
          },
        ],
        giveAccessUrl: text('/hub/admin/give-access?user=bob'),
        tokens: {
          shown: [
            {
              id: text('t1'),
              title: text('Nightly'),
              may: [
                {
                  scope: text('servers!user'),
                  description: text('Start, stop and read servers'),
                  restriction: text('only their own account'),
                },
              ],
              createdAt: minutes(-90),
            },
          ],
          total: 70,
        },
        mayRevoke: true,
        activity: [],
      },
      identities: [{ label: text('GitHub'), display: text('bob-b') }],
      servers: [
        { ...server('running', { userName: text('bob'), load: sampleLoad() }), mayOpen: true },
        server('failed', { ...named, failure: text('It did not answer in 30 seconds.') }),
      ],
      sessions: sessions.slice(1),
      password: 'set',
      hasSecondFactor: true,
      isSelf: false,
      may: { change: true, delete: true, endSessions: true },
    }),
    'admin-announcements': announcementsPage({
      layout: {
        ...layout,
        announcements: [
          {
            text: text('Maintenance until 2026-11-20 18:00 UTC: no servers are started.'),
            level: 'warning',
          },
          { text: text('A course begins on Monday: https://example.org/course.'), level: 'info' },
        ],
      },
      announcement: {
        text: text('A course begins on Monday: https://example.org/course.'),
        level: 'info',
        pages: ['home'],
      },
      runningServers: 12,
      maintenance: { text: text('New disks.'), since: minutes(-10), until: minutes(480) },
      typed: { form: 'maintenance', text: text('New disks'), problem: text('This is too long.') },
    }),
    'admin-announcements-changed': announcementsPage({
      layout,
      announcement: undefined,
      runningServers: 0,
      maintenance: { text: text('New disks.'), since: minutes(10), until: minutes(480) },
      typed: {
        form: 'maintenance',
        text: text('New cables.'),
        changed: {
          by: html`<a href="/hub/admin/users/ada">${text('ada')}</a>`,
          now: maintenanceFacts({ text: text('New disks.'), since: minutes(-10) }),
        },
      },
    }),
    'admin-maintenance-confirmed': announcementsPage({
      layout: {
        ...layout,
        announcements: shownNotices(
          { maintenance: { text: text('New disks.'), since: minutes(120), until: minutes(480) } },
          sampleNow.getTime(),
        ),
      },
      announcement: undefined,
      maintenance: undefined,
      runningServers: 12,
      typed: {
        form: 'maintenance',
        text: text('New disks.'),
        start: '2026-11-20T18:00',
        isUnconfirmed: true,
      },
    }),
    'admin-new-users': newUsersPage({
      layout,
      typed: text('name;email\nbob;"bob@example.org'),
      problem: text('Line 2: a quotation mark is not closed.'),
    }),
    'admin-new-users-preview': newUsersPreviewPage({
      layout,
      typed: text('bob'),
      file: {
        columns: ['name', 'displayName', 'email', 'groups', 'roles', 'isAdmin'],
        unused: [text('Matriculation')],
        users: ['bob', 'carol x', '=1+1', 'Ada'].map((name, index) => ({
          line: index + 2,
          name: text(name),
          displayName: text('Bob B.'),
          email: text('bob@example.org'),
          groups: [text('statistics-101'), text('staff')],
          roles: [],
          isAdmin: index === 0,
        })),
      },
      verdicts: [
        { name: text('bob'), verdict: 'create' },
        { name: text('carol x'), verdict: 'create', reason: text('The user name has a space.') },
        { name: text('=1+1'), verdict: 'invalid', reason: text('It is a formula.') },
        { name: text('Ada'), verdict: 'alike' },
      ],
    }),
    'admin-links': invitationLinksPage({
      layout,
      purpose: 'invitation',
      links: [
        {
          userName: text('bob'),
          url: text('https://hub.example.org/hub/invitation#Zk3v9QmX2bTq7LsW1nRd8A'),
        },
      ],
      lifetimeSeconds: 259_200,
    }),
    'admin-many-links': invitationLinksPage({
      layout,
      purpose: 'reset',
      links: ['bob', 'carol'].map((name) => ({
        userName: text(name),
        url: text('https://hub.example.org/hub/invitation#Zk3v9QmX2bTq7LsW1nRd8A'),
      })),
      problems: [text('eve: There is no such user.')],
      lifetimeSeconds: 86_400,
    }),
    'admin-groups': adminGroupsPage({
      layout,
      groups: [
        { name: text('physics'), memberCount: 31, origin: 'config' },
        { name: text('staff'), memberCount: 1_204, origin: text('keycloak') },
      ],
      search: text('s'),
      paging: groupPaging,
      mayCreate: true,
    }),
    'admin-group': adminGroupPage({
      layout,
      group: { name: text('physics'), origin: 'api', properties: { [text('room')]: text('A 12') } },
      members: ['alice', 'bob'].map((name) => ({ name: text(name), origin: text('github') })),
      search: text('b'),
      paging: groupPaging,
      roles: [
        {
          name: text('course-lead'),
          description: text('Leads a course.'),
          scopes: [],
          origin: 'api',
          mayTakeAway: true,
        },
      ],
      access: sampleAccess(text, { kind: 'group', value: text('physics') }),
      may: { changeMembers: true, delete: true, listUsers: true },
    }),
    'admin-group-properties': adminGroupPropertiesPage({
      layout,
      group: { name: text('physics'), properties: {}, version: text('v1') },
      typed: text('{"room": "A 12"'),
      problem: text('This is not JSON.'),
      changed: {
        by: undefined,
        now: groupFacts({ memberCount: 31, properties: { [text('room')]: text('A 14') } }),
      },
    }),
    'admin-roles': adminRolesPage({
      layout,
      mayCreate: true,
      roles: [
        {
          name: 'admin',
          description: text('What administrators may do.'),
          scopes: [],
          origin: 'default',
          holderCount: 0,
        },
        {
          name: text('course-lead'),
          description: text('Looks after a course.'),
          scopes: [],
          origin: 'api',
          holderCount: 3,
        },
        {
          name: text('gallery-editor'),
          description: '',
          scopes: [],
          origin: 'config',
          holderCount: 12,
        },
      ],
    }),
    'admin-role': adminRolePage({
      layout,
      role: {
        name: text('course-lead'),
        description: text('Looks after a course.'),
        scopes: [],
        origin: 'api',
      },
      allows: [
        {
          scope: 'admin-ui',
          description: text('Open the administration page.'),
          restriction: undefined,
        },
        {
          scope: text('servers!group=course'),
          description: text('Start, stop and read servers.'),
          restriction: text('only group course'),
        },
      ],
      assignments: [
        {
          roleName: 'course-lead',
          subjectKind: 'group',
          subjectName: text('course-leads'),
          origin: 'config',
          mayTakeAway: false,
        },
        {
          roleName: 'course-lead',
          subjectKind: 'user',
          subjectName: text('bob'),
          origin: 'api',
          mayTakeAway: true,
        },
      ],
      paging: groupPaging,
      assignable: ['user', 'service'],
      fixedReasons: [text('The configuration says who holds the role.')],
      mayChange: true,
      typedKind: 'user',
      typedNames: text('carol\nno-one'),
      problem: text('There is no such user: "no-one".'),
    }),
    'admin-role-form': adminRoleFormPage({
      layout,
      existing: { name: text('course-lead'), version: 'k3Jw0s1' },
      description: text('Looks after a course.'),
      choices: [
        { scope: 'admin-ui', description: text('Open the administration page.'), isChosen: true },
        { scope: 'list:users', description: text('List users.'), isChosen: false },
        {
          scope: 'read:metrics',
          description: text('Read the metrics of the hub.'),
          isChosen: false,
        },
      ],
      filtered: text('servers!group=course'),
      problem: text('This role may do more than you may. You lack "shutdown".'),
    }),
    'admin-give-access': giveAccessPage({
      layout,
      typed: {
        holders: 'user',
        names: text('tim'),
        kind: 'custom',
        scopes: text('servers list:users'),
        where: 'group',
        place: text('statistics-101'),
        return_to: '/hub/admin/users/tim',
      },
      scopes: [{ scope: 'servers', description: text("Start, stop and read users' servers") }],
      places: [{ type: 'group', name: text('statistics-101') }],
      cancelUrl: '/hub/admin/users/tim',
      problem: text('This role may do more than you may.'),
    }),
    'admin-services': adminServicesPage({
      layout,
      mayAdd: true,
      query: { search: text('a'), group: undefined, show: undefined },
      total: 31,
      borders: { first: undefined, last: '25,gallery' },
      size: 25,
      counts: { all: 31, ready: 20, starting: 1, unhealthy: 4, crash_looping: 5, stopped: 1 },
      services: [
        {
          displayName: text('Notebook gallery'),
          url: text('/services/notebook-gallery/'),
          status: managed,
        },
        { url: text('/services/label-studio/'), status: failing },
        {
          url: text('/services/wiki/'),
          status: {
            ...managed,
            instance: undefined,
            name: text('wiki'),
            kind: 'external',
            state: 'unhealthy',
            isReady: false,
            lastError: text('It answered 502.'),
            pid: undefined,
            startedAt: undefined,
            usage: undefined,
          },
        },
        {
          url: text('/services/map/'),
          status: {
            ...managed,
            instance: undefined,
            name: text('map'),
            kind: 'external',
            pid: undefined,
            startedAt: undefined,
            uptimeMs: undefined,
            usage: undefined,
            answeredInMs: 12.3,
          },
        },
      ],
    }),
    'admin-service': adminServicePage({
      layout,
      service: { ...sampleService(text), access: 'service' },
      endpoints: endpointsOf(new URL('https://hub.example.org/')),
      status: failing,
      url: text('/services/label-studio/'),
      load: { series: sampleLoad(), silent: [] },
      span: 'hour',
      output: {
        url: text('/hub/api/services/label-studio/output'),
        lines: outputTail,
        problem: text('The instance "hub-b" of the hub has not answered for a while.'),
      },
      openedBy: [text('admin'), text('user')],
      access: sampleAccess(text, { kind: 'service', value: text('label-studio') }),
      may: { run: true, edit: true, delete: true },
    }),
    'admin-service-form': adminServiceFormPage({
      layout,
      form: {
        name: text('label-studio'),
        title: text('Label Studio'),
        url: text('http://127.0.0.1:8080'),
        access: 'gateway',
        isDisplayed: true,
        redirectUris: text('https://labels.example.org/oauth/callback'),
        limits: limitsFormOf(undefined),
        headers: headersFormOf(undefined),
        launch: undefined,
      },
      problem: text('url: is an address of the hub itself.'),
    }),
    'admin-managed-service-form': adminServiceFormPage({
      layout,
      version: text('k3Jw0s1'),
      form: {
        name: text('label-studio'),
        title: text('Label Studio'),
        url: text('http://127.0.0.1:8080'),
        access: 'gateway',
        isDisplayed: true,
        redirectUris: text('https://labels.example.org/oauth/callback'),
        limits: limitsFormOf({
          requests_per_second: 20,
          per: 'user',
          allow_addresses: [text('10.0.0.0/8')],
        }),
        headers: headersFormOf({
          request: {
            set: { [text('X-Api-Key')]: text('Gm2v9') },
            remove: [text('Accept-Language')],
          },
          response: { set: { [text('X-Frame-Options')]: text('DENY') } },
        }),
        launch: {
          command: text('label-studio start --port 8080'),
          environment: '',
          isEnvironmentCleared: false,
          cwd: text('/srv/labels'),
          user: '',
        },
      },
    }),
    'admin-new-service': newServicePage({
      layout,
      name: text('label-studio'),
      token: text('hub_Zk3v9QmX2bTq7LsW1nRd8A'),
    }),
    'admin-instances': instancesPage({
      layout,
      span: 'hour',
      loads: {
        byInstance: new Map([[text('hub-a'), sampleLoad()]]),
        together: { series: sampleLoad(), silent: [text('hub-b')] },
      },
      instances: [
        {
          instance: sampleInstance(text('hub-a'), {
            version: text('0.1.0'),
            host: text('node-5.example.org'),
          }),
          isHere: true,
          isUp: true,
          downSince: undefined,
          leaseUntil: minutes(0.2),
          hasOtherSettings: false,
          owned: { servers: 1_204, services: [text('wiki'), text('idle-culler')] },
          figures: { memoryBytes: 231e6, cpuCores: 0.34, loadAverage: 1.2, machineCores: 8 },
          gateways: [
            {
              name: text('machine-a-4243'),
              version: text('0.1.0'),
              isLocal: true,
              reported: {
                name: text('machine-a-4243'),
                host: text('machine-a'),
                pid: 4243,
                startedAtMs: minutes(-90).getTime(),
                reportedAtMs: sampleNow.getTime(),
                connections: 212,
                webSockets: 87,
                requests: 1_204_551,
                feedLagMs: 700,
              },
            },
            {
              name: text('edge'),
              version: text('0.1.0'),
              isLocal: false,
              reported: {
                name: text('edge'),
                host: text('machine-d'),
                pid: 77,
                startedAtMs: minutes(-9_000).getTime(),
                reportedAtMs: sampleNow.getTime(),
                connections: 4,
                webSockets: 0,
                requests: 551,
                feedLagMs: 4_700,
              },
            },
            { name: text('new'), version: text('0.1.0'), isLocal: true, reported: undefined },
          ],
          problem: undefined,
        },
        {
          instance: sampleInstance(text('hub-b'), {
            isLive: false,
            host: text('node-5.example.org'),
          }),
          isHere: false,
          isUp: false,
          downSince: minutes(-4),
          leaseUntil: minutes(-3.75),
          hasOtherSettings: false,
          owned: { servers: 3, services: [text('grader')] },
          figures: undefined,
          gateways: [],
          problem: undefined,
        },
        {
          instance: sampleInstance(text('hub-c'), {
            url: undefined,
            host: text('node-5.example.org'),
          }),
          isHere: false,
          isUp: true,
          downSince: undefined,
          leaseUntil: minutes(0.2),
          hasOtherSettings: true,
          owned: { servers: 0, services: [] },
          figures: undefined,
          gateways: [],
          problem: text('The instance "hub-c" of the hub cannot be reached from here.'),
        },
      ],
    }),
    'admin-activity': activityPage({
      layout,
      entries: auditEntries(text),
      filter: {
        actor: text('ada'),
        target: '',
        action: 'user.create',
        address: '',
        result: 'refused',
        since: '2026-01-01',
        until: '',
      },
      next: '1767225600000-17',
      isFirstPage: false,
      about: { name: text('ada'), isSuspended: false, sessions },
      may: { endSessions: true, suspend: true },
    }),
    usage: ownUsagePage({
      layout,
      time: sampleMonth,
      days: sampleUse,
      sum: sumOfUse,
      budgets: shownBudgets,
      currency: '€',
    }),
    'usage-none': ownUsagePage({
      layout,
      time: sampleMonth,
      days: [],
      sum: noUse,
      budgets: shownBudgets,
      currency: '',
    }),
    'admin-usage': usagePage({
      layout,
      query: { by: 'user', sort: 'cost' },
      time: sampleMonth,
      found: {
        items: ['ada', 'bob'].map((name) => ({ name: text(name), ...sumOfUse })),
        total: 20_000,
        sum: sumOfUse,
      },
      days: sampleUse,
      sumOfDays: sumOfUse,
      currency: '€',
      maySeeBudgets: true,
    }),
    'admin-homes': homesPage({
      layout,
      homes: [
        {
          userName: text('ada'),
          space: {
            usedBytes: 9e12,
            totalBytes: 10e12,
            measuredAt: new Date(sampleNow.getTime() - 60_000),
          },
          key: '9,ada',
        },
        { userName: text('bob'), space: undefined, key: '-1,bob' },
      ],
      total: 5_000,
      borders: { first: undefined, last: '-1,bob' },
    }),
    'admin-homes-none': homesPage({
      layout,
      homes: [],
      total: 0,
      borders: { first: undefined, last: undefined },
    }),
    'admin-usage-none': usagePage({
      layout,
      query: { by: 'group', sort: 'cost' },
      time: sampleMonth,
      found: { items: [], total: 0, sum: noUse },
      days: [],
      sumOfDays: noUse,
      currency: '',
      maySeeBudgets: false,
    }),
    'admin-budgets': budgetsPage({
      layout,
      budgets: shownBudgets.map(({ budget }, index) => ({
        ...budget,
        group: text(budget.group),
        period: text(budget.period),
        isConfigured: index === 0,
      })),
      currency: '€',
      typed: { name: text('course-a'), who: text('course') },
      problem: text('period: must be day, week, month, or a time such as 48h or 7d'),
    }),
    'admin-budgets-none': budgetsPage({ layout, budgets: [], currency: '', typed: {} }),
    'admin-keys': keysPage({
      layout,
      keys: (['former', 'active', 'next', 'lost'] as const).map((state, index) => ({
        id: text(`q7Rk2mXw9Lb4Tn${index}`),
        algorithm: index === 3 ? 'ES256' : 'RS256',
        privateKey: undefined,
        activeFrom: minutes(-90 + index),
        endsAt: state === 'former' ? minutes(30) : undefined,
        state,
      })),
    }),
    'admin-lockouts': lockoutsPage({
      layout: {
        ...layout,
        passedOver: {
          names: [text('serach'), text('role')],
          meant: { names: [text('search')], url: '/hub/admin/lockouts?search=bob' },
        },
      },
      lockouts: [
        {
          kind: 'user',
          subject: text('bob'),
          failures: 7,
          lastFailureAt: sampleNow.getTime(),
          lockedUntil: minutes(2).getTime(),
        },
        {
          kind: 'address',
          subject: text('192.0.2.17'),
          failures: 31,
          lastFailureAt: sampleNow.getTime(),
          lockedUntil: minutes(14).getTime(),
        },
      ],
    }),
    'open-server': openServerPage({
      layout,
      ownerName: text('evil'),
      serverName: text('lab'),
      next: text('/user/evil/lab/notebooks/a.ipynb'),
    }),
    'confirm-delete': confirmPage({
      layout,
      title: text('Delete bob?'),
      consequences: [
        text('Two running servers stop, and unsaved work in them is lost.'),
        html`<b>${text('Tokens and logins of bob end at once.')}</b>`,
      ],
      label: text('Delete bob'),
      action: text('/hub/admin/users/bob/delete'),
      cancelUrl: text('/hub/admin/users/bob'),
      typeToConfirm: text('bob'),
    }),
  };
}

function auditEntries(text: (text: string) => string): AuditEntry[] {
  const entry = {
    at: minutes(-7),
    actor: {
      kind: 'user',
      name: text('ada'),
      sessionId: 'session',
      tokenId: undefined,
      address: text('192.0.2.7'),
    },
    users: [],
    result: 'done',
    detail: {},
    instance: 'hub-a',
    count: 1,
  } as const;
  return [
    {
      ...entry,
      id: 5,
      action: 'user.create',
      target: { kind: 'user', name: text('bob') },
      detail: { admin: true },
    },
    {
      ...entry,
      id: 4,
      count: 950,
      action: 'server.stop',
      target: { kind: 'server', name: text('bob'), part: text('gpu') },
      actor: { ...entry.actor, kind: 'service', name: text('culler') },
    },
    {
      ...entry,
      id: 3,
      action: 'access',
      result: 'refused',
      target: { kind: 'group', name: text('team') },
      detail: { operation: 'getGroup', code: text('forbidden') },
    },
    {
      ...entry,
      id: 2,
      action: 'login',
      result: 'refused',
      target: undefined,
      actor: { ...entry.actor, kind: 'anonymous', name: undefined },
      detail: { authenticator: 'password', reason: 'credentials' },
    },
    {
      ...entry,
      id: 1,
      action: 'hub.start',
      target: { kind: 'hub', name: text('hub-a') },
      actor: { ...entry.actor, kind: 'hub', name: undefined, address: undefined },
      detail: { version: '0.1.0' },
    },
  ];
}
