import type { InstanceView } from '../../../cluster/instances/instance-overview.ts';
import { hasBegun, type Notices } from '../../../cluster/notices/notice-store.ts';
import type { UserCounts, UserStatus } from '../../../identity/users/user-filters-store.ts';
import { fieldByStatus, type KnownOfUsers, usualUsers } from '../../../operations/users-query.ts';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import type { PlacedStatus } from '../../../workloads/services/service-status.ts';
import { auditTable } from '../elements/audit-table.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { formatNumber } from '../elements/quantity.ts';
import type { BoundPages } from '../forms/binding.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { usersUrl, withQuery } from '../page-urls.ts';
import { type ShownState, shownStates } from '../services/services-query.ts';

/** What the reader may not know is undefined. */
export interface OverviewView {
  readonly layout: LayoutProps;
  readonly users: { readonly counts: UserCounts; readonly known: KnownOfUsers } | undefined;
  readonly services: readonly PlacedStatus[] | undefined;
  readonly hub:
    | {
        readonly instances: readonly Pick<
          InstanceView,
          'instance' | 'isHere' | 'isUp' | 'hasOtherSettings'
        >[];
        readonly missingGateways: number;
        readonly problems: readonly string[];
        readonly backup: 'good' | 'old' | 'failed' | undefined;
      }
    | undefined;
  readonly servers: { readonly active: number; readonly limit: number } | undefined;
  readonly lockouts: number | undefined;
  readonly maintenance: Notices['maintenance'];
  readonly latest: readonly AuditEntry[] | undefined;
}

/** Something that an administrator should look at, and where. */
interface Concern {
  readonly kind: 'bad' | 'warn';
  readonly what: Phrase;
  /** Which ones. */
  readonly names?: readonly string[];
  readonly url: string;
}

/** `/hub/admin`: how everything is. */
export function adminOverviewRoutes({ page, pages: { urls } }: BoundPages): void {
  page('/admin', 'viewOverview', ({ layout, model, ctx: { querystring } }) =>
    // Once the list of users was here, with what it shows in its address.
    querystring === ''
      ? overviewPage({ layout, ...model })
      : { redirect: `${urls.adminUsers}?${querystring}` },
  );
}

/** What is wrong, or that all is well; how many there are of everything; what happened last. */
export function overviewPage(view: OverviewView): Html {
  const { layout, latest = [] } = view;
  const concerns = concernsOf(view);
  return adminLayout(layout, {
    title: text`Overview`,
    tab: 'overview',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Overview`)}
<div id="overview" data-live-seconds="10">${
      concerns.length === 0
        ? html`<p><span class="status good">${text`All well`}</span></p>`
        : html`<ul class="concerns" aria-label="${text`Needs attention`}">${concerns.map(concernItem)}</ul>`
    }
<ul class="figures" aria-label="${text`In figures`}">${figuresOf(view)}</ul>
${
  latest.length > 0 &&
  html`<section class="block"><h2>${text`Latest activity`}</h2>
${auditTable(layout, latest, { caption: text`Latest activity`, isForAdministrators: true })}
<p><a href="${layout.urls.adminActivity}">${text`All activity`}</a></p></section>`
}</div>`,
  });
}

const shownNames = 3;
/** Of a limit. */
const nearlyFull = 0.9;

function concernItem({ kind, what, names = [], url }: Concern): Html {
  const more = names.length > shownNames ? ', …' : '';
  return html`<li><span class="status ${kind}"></span> <a href="${url}">${what}</a>${names.length > 0 && html` <span class="soft">${names.slice(0, shownNames).join(', ')}${more}</span>`}</li>`;
}

function concernsOf({
  layout: { now, urls },
  users,
  services = [],
  servers,
  hub,
  lockouts = 0,
  maintenance,
}: OverviewView): readonly Concern[] {
  const { instances = [], missingGateways = 0, problems = [] } = hub ?? {};
  const namesOf = (show: ShownState) =>
    services.filter(({ state }) => shownStates[show].includes(state)).map(({ name }) => name);
  const ofServices = (show: ShownState, what: (count: number) => Phrase): Concern[] => {
    const names = namesOf(show);
    const url = withQuery(urls.adminServices, { show });
    return names.length === 0 ? [] : [{ kind: 'bad', what: what(names.length), names, url }];
  };
  const failed = countOf(users, 'failed');
  const away = instances.filter(({ isUp }) => !isUp);
  const others = instances.filter(({ isUp, hasOtherSettings }) => isUp && hasOtherSettings);
  const ofInstances = (
    concern: Pick<Concern, 'kind' | 'what'>,
    which: typeof instances,
  ): Concern[] =>
    which.length === 0
      ? []
      : [
          {
            ...concern,
            names: which.map(({ instance }) => instance.name),
            url: urls.adminInstances,
          },
        ];
  const one = (count: number, concern: Concern): Concern[] => (count === 0 ? [] : [concern]);
  return [
    ...problems.map(
      (problem): Concern => ({
        kind: 'bad',
        what: text`The hub is not ready: ${problem}`,
        url: urls.adminInstances,
      }),
    ),
    ...(hub?.backup === 'failed' || hub?.backup === 'old'
      ? [
          {
            kind: 'bad' as const,
            what:
              hub.backup === 'failed'
                ? text`The last backup of the database failed`
                : text`The last backup of the database is old`,
            url: urls.adminInstances,
          },
        ]
      : []),
    ...ofInstances(
      {
        kind: 'bad',
        what: message('{count, plural, one {# instance is down} other {# instances are down}}', {
          count: away.length,
        }),
      },
      away,
    ),
    ...one(missingGateways, {
      kind: 'bad',
      what: message('{count, plural, one {# gateway is down} other {# gateways are down}}', {
        count: missingGateways,
      }),
      url: urls.adminInstances,
    }),
    ...ofServices('crash_looping', (count) =>
      message('{count, plural, one {# service keeps failing} other {# services keep failing}}', {
        count,
      }),
    ),
    ...ofServices('unhealthy', (count) =>
      message('{count, plural, one {# service does not answer} other {# services do not answer}}', {
        count,
      }),
    ),
    ...one(failed, {
      kind: 'bad',
      what: message(
        '{count, plural, one {The server of # user has failed} other {Servers of # users have failed}}',
        { count: failed },
      ),
      url: usersUrl(urls, { ...usualUsers, status: 'failed' }),
    }),
    ...ofInstances(
      {
        kind: 'warn',
        what: message(
          '{count, plural, one {# instance has other settings} other {# instances have other settings}}',
          { count: others.length },
        ),
      },
      others,
    ),
    ...one(Number(servers !== undefined && servers.active >= servers.limit * nearlyFull), {
      kind: 'warn',
      what: text`${servers?.active ?? 0} of the ${servers?.limit ?? 0} servers that can run at once`,
      url: urls.adminServers,
    }),
    ...one(countOf(users, 'invitation_expiring'), {
      kind: 'warn',
      what: message(
        '{count, plural, one {# invitation expires within two days} other {# invitations expire within two days}}',
        { count: countOf(users, 'invitation_expiring') },
      ),
      url: usersUrl(urls, { ...usualUsers, status: 'invitation_expiring' }),
    }),
    ...one(lockouts, {
      kind: 'warn',
      what: message(
        '{count, plural, one {# user name or address is locked out} other {# user names or addresses are locked out}}',
        { count: lockouts },
      ),
      url: urls.adminLockouts,
    }),
    ...one(Number(hasBegun(maintenance, now.getTime())), {
      kind: 'warn',
      what: text`Maintenance: no servers are started`,
      url: urls.adminAnnouncements,
    }),
  ];
}

/** 0 where it may not be known. */
function countOf(users: OverviewView['users'], status: UserStatus): number {
  return users?.known[fieldByStatus[status]] === true ? users.counts[status] : 0;
}

function figuresOf({ layout: { urls }, users, services, hub }: OverviewView): HtmlValue {
  const figure = (count: number, label: Phrase, url: string): Html =>
    html`<li><a href="${url}">${label} <b>${formatNumber(count)}</b></a></li>`;
  const ofUsers = (status: UserStatus, label: Phrase): HtmlValue =>
    users?.known[fieldByStatus[status]] === true &&
    figure(users.counts[status], label, usersUrl(urls, { ...usualUsers, status }));
  return [
    users && figure(users.counts.all, text`Users`, urls.adminUsers),
    ofUsers('running', text`With a running server`),
    ofUsers('starting', text`With a server that starts`),
    services && figure(services.length, text`Services`, urls.adminServices),
    hub && figure(hub.instances.length, text`Instances`, urls.adminInstances),
  ];
}
