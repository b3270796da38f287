import type { LoadSeries } from '../../metrics/load-history.ts';
import type { PlacedStatus } from '../../services/service-status.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSpark } from '../elements/load-plots.ts';
import { formatBytes, formatCount, formatCpu } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';
import { serviceStatus } from '../services/service-list.ts';
import { adminLayout } from './admin-layout.ts';
import { stateSince } from './service-page.ts';

export interface AdminServicesView {
  readonly layout: FormLayoutProps;
  readonly services: readonly ListedService[];
  readonly mayAdd: boolean;
}

/** A service in the list of all. */
export interface ListedService {
  readonly displayName?: string | undefined;
  /** Where users open it, when it has pages. */
  readonly url?: string | undefined;
  readonly status: PlacedStatus;
  /** Of the last hour, as far as it is known here; left out of long lists. */
  readonly load?: LoadSeries | undefined;
}

/** How every service is, a row for each; the rest is on the page of the service. */
export function adminServicesPage({ layout, services, mayAdd }: AdminServicesView): Html {
  const failing = services.filter(({ status }) => status.state === 'crash_looping').length;
  return adminLayout(layout, {
    title: 'Services',
    tab: 'services',
    scripts: ['live-state.js'],
    body: html`${pageHead('Services', failing === 0 ? 'Those of the configuration file, those added since, and how they are.' : `${formatCount(failing, 'service')} ${failing === 1 ? 'keeps' : 'keep'} failing. The last output usually says why.`, mayAdd && html`<a class="button primary" href="${layout.urls.adminNewService}">Add service</a>`)}
<div id="services" data-live-seconds="5">${services.length === 0 ? html`<p class="empty">There are no services yet.</p>` : serviceTable(layout, services)}</div>`,
  });
}

function serviceTable(layout: FormLayoutProps, services: readonly ListedService[]): Html {
  const { urls } = layout;
  return table(
    'Services',
    [
      {
        label: 'Service',
        style: 'name',
        cell: ({ displayName, status: { name, lastError, isReady } }) =>
          html`<a href="${urls.adminService(name)}">${displayName ?? name}</a>${displayName !== undefined && html`<span class="under">${name}</span>`}${!isReady && lastError !== undefined && html`<span class="under">${lastError}</span>`}`,
      },
      {
        label: 'State',
        cell: ({ status }) =>
          html`${serviceStatus(status.state)}<span class="under">${stateSince(layout, status)}</span>`,
      },
      {
        label: 'Runs at',
        cell: ({ status: { kind, instance } }) =>
          instance ??
          html`<span class="soft">${kind === 'external' ? 'Elsewhere' : 'Nowhere'}</span>`,
      },
      {
        label: 'CPU',
        cell: ({ load, status: { usage } }) =>
          usage && html`${formatCpu(usage.cpuCores)} ${loadSpark(load, 'cpuCores')}`,
      },
      {
        label: 'Memory',
        cell: ({ load, status: { usage } }) =>
          usage && html`${formatBytes(usage.memoryBytes)} ${loadSpark(load, 'memoryBytes')}`,
      },
      {
        label: 'Restarts',
        cell: ({ status: { kind, restarts } }) =>
          kind === 'managed' && restarts.toLocaleString('en'),
      },
      {
        label: 'Open',
        style: 'end',
        cell: ({ displayName, url, status: { name } }) =>
          url !== undefined &&
          html`<a class="button small" href="${url}" aria-label="Open ${displayName ?? name}">Open</a>`,
      },
    ],
    services,
  );
}
