import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import type { PlacedStatus } from '../../../workloads/services/service-status.ts';
import { adminLink } from '../elements/admin-link.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSparks } from '../elements/load-plots.ts';
import {
  duration,
  formatBytes,
  formatCpu,
  formatNumber,
  formatSeconds,
} from '../elements/quantity.ts';
import { searchForm } from '../elements/search-form.ts';
import { type PageBorders, paging, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import { serviceStatus } from '../services/service-list.ts';
import {
  type ServicesQuery,
  type ShownState,
  servicesUrl,
  shownStates,
} from '../services/services-query.ts';
import { stateSince } from './service-page.ts';

export interface AdminServicesView {
  readonly layout: FormLayoutProps;
  readonly query: ServicesQuery;
  /** Those on this page. */
  readonly services: readonly ListedService[];
  readonly borders: PageBorders;
  /** Those that match, on all pages. */
  readonly total: number;
  /** Those on a page. */
  readonly size: number;
  /** Of those that match the search, whatever state is shown. */
  readonly counts: Readonly<Record<ShownState | 'all', number>>;
  readonly mayAdd: boolean;
}

/** A service in the list of all. */
export interface ListedService {
  readonly displayName?: string | undefined;
  /** Where users open it, when it has pages. */
  readonly url?: string | undefined;
  readonly status: PlacedStatus;
  /** Of the last hour, as far as it is known here. */
  readonly load?: LoadSeries | undefined;
}

/** How every service is, a row for each; the rest is on the page of the service. */
export function adminServicesPage(view: AdminServicesView): Html {
  const { layout, query, services, total, size, counts, mayAdd } = view;
  const { urls } = layout;
  return adminLayout(layout, {
    title: text`Services`,
    tab: 'services',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Services`, leadOf(counts.crash_looping), mayAdd && html`<a class="button primary" href="${urls.adminNewService}">${text`Add service`}</a>`)}
${(counts.all > size || query.search !== '') && serviceSearch(view)}
<div id="services" data-live-seconds="5">${chips(view)}
<section class="block">${services.length === 0 ? html`<p class="empty">${nothing(view)}</p>` : serviceTable(layout, services)}
${paging({ total, shown: services.length, borders: view.borders, urlOf: (edge) => servicesUrl(urls.adminServices, { ...query, edge }) })}</section></div>`,
  });
}

function leadOf(failing: number): Phrase {
  return failing === 0
    ? text`Those of the configuration file, those added since, and how they are.`
    : message(
        '{count, plural, one {# service keeps failing.} other {# services keep failing.}} The last output usually says why.',
        { count: failing },
      );
}

function serviceSearch({ layout, query: { search, show } }: AdminServicesView): Html {
  const label = text`Find by title, name or description`;
  return searchForm(layout.urls.adminServices, { label, search, fields: { show } });
}

const stateLabels = {
  ready: text`Ready`,
  starting: text`Starting`,
  unhealthy: text`Not answering`,
  crash_looping: text`Keeps failing`,
  stopped: text`Stopped`,
} as const satisfies Record<ShownState, Phrase>;

function chips({ layout: { urls }, query, counts }: AdminServicesView): HtmlValue {
  if (counts.all === 0) return false;
  const states = Object.keys(shownStates) as ShownState[];
  return html`<nav class="chips" aria-label="${text`Show`}">${[undefined, ...states].map(
    (show) =>
      html`<a class="chip" href="${servicesUrl(urls.adminServices, { ...query, show, edge: undefined })}"${show === query.show && html` aria-current="true"`}>${show === undefined ? text`All` : stateLabels[show]} <b>${formatNumber(counts[show ?? 'all'])}</b></a>`,
  )}</nav>`;
}

function nothing({ query: { search, show } }: AdminServicesView): HtmlValue {
  if (search !== '') return text`No service matches “${search}”.`;
  return show === undefined
    ? text`There are no services yet.`
    : text`There are no such services now.`;
}

function serviceTable(layout: FormLayoutProps, services: readonly ListedService[]): Html {
  return table(
    text`Services`,
    [
      {
        label: text`Service`,
        style: 'name',
        cell: ({ displayName, status: { name, lastError, isReady } }) =>
          html`${adminLink(layout, 'service', name, displayName ?? name)}${displayName !== undefined && html`<span class="under">${name}</span>`}${!isReady && lastError !== undefined && html`<span class="under">${lastError}</span>`}`,
      },
      {
        label: text`State`,
        cell: ({ status }) =>
          html`${serviceStatus(status.state)}<span class="under">${stateSince(layout, status)}</span>`,
      },
      {
        label: text`Runs at`,
        cell: ({ status: { kind, instance } }) =>
          instance ??
          html`<span class="soft">${kind === 'external' ? text`External` : text`Nowhere`}</span>`,
      },
      {
        label: text`Load`,
        cell: (service) =>
          html`${loadSparks(service.load)}<span class="under">${lifeOf(service, layout.now)}</span>`,
      },
      {
        label: text`Open`,
        style: 'end',
        cell: ({ displayName, url, status: { name } }) =>
          url !== undefined &&
          html`<a class="button small" href="${url}" aria-label="${text`Open ${displayName ?? name}`}">${text`Open`}</a>`,
      },
    ],
    services,
    { style: 'dense', keyOf: ({ status: { name } }) => name },
  );
}

/** How long it has run or answered, how often it was started again, and what it uses where that is not drawn. */
function lifeOf({ load, status }: ListedService, now: Date): HtmlValue {
  const { kind, isReady, since, uptimeMs, restarts, usage, answeredInMs } = status;
  const answersMs =
    kind === 'external' && isReady && since ? Number(now) - Number(since) : undefined;
  const upMs = uptimeMs ?? answersMs;
  const parts = [
    upMs !== undefined && upMs >= 0 && text`Up for ${duration(upMs / 1000)}`,
    answeredInMs !== undefined && text`Answers in ${formatSeconds(answeredInMs / 1000)}`,
    restarts > 0 &&
      message('{count, plural, one {# restart} other {# restarts}}', { count: restarts }),
    ...(load === undefined && usage
      ? [formatCpu(usage.cpuCores), formatBytes(usage.memoryBytes)]
      : []),
  ];
  return joinHtml(
    parts.filter((each) => each !== false),
    ' · ',
  );
}
