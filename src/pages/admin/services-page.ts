import type { Service } from '../../services/service.ts';
import type { PlacedStatus, ServiceExit } from '../../services/service-status.ts';
import { actionForm } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatBytes, formatCount, formatCpu } from '../elements/quantity.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { outputBlock } from '../servers/server-summary.ts';
import { serviceStatus } from '../services/service-list.ts';
import { adminLayout } from './admin-layout.ts';

export interface AdminServicesView {
  readonly layout: FormLayoutProps;
  readonly services: readonly AdminService[];
  readonly mayAdd: boolean;
}

/** A service as an administrator sees it. */
export interface AdminService {
  readonly displayName?: string | undefined;
  /** Where users open it, when it has pages. */
  readonly url?: string | undefined;
  readonly access: Service['access'];
  readonly status: PlacedStatus;
  readonly mayRestart: boolean;
  /** Of one that was added at run time; a form shows only what is to be said of external ones. */
  readonly mayEdit: boolean;
  readonly mayDelete: boolean;
}

/** How every service is: state, restarts, figures, last output. */
export function adminServicesPage({ layout, services, mayAdd }: AdminServicesView): Html {
  const failing = services.filter(({ status }) => status.state === 'crash_looping').length;
  return adminLayout(layout, {
    title: 'Services',
    tab: 'services',
    scripts: ['live-state.js'],
    body: html`${pageHead('Services', failing === 0 ? 'Those of the configuration file, those added since, and how they are.' : `${formatCount(failing, 'service')} ${failing === 1 ? 'keeps' : 'keep'} failing. The last output usually says why.`, mayAdd && html`<a class="button primary" href="${layout.urls.adminNewService}">Add service</a>`)}
${services.length === 0 && html`<p class="empty">There are no services yet.</p>`}
${services.map((service, index) => serviceArticle(layout, service, index))}`,
  });
}

function serviceArticle(layout: FormLayoutProps, service: AdminService, index: number): Html {
  const { displayName, url, status } = service;
  const { name, state, kind, outputTail } = status;
  return html`<article class="service" id="service-${index}" data-live-seconds="5">
<header><div class="row"><h2>${displayName ?? name}</h2>${serviceStatus(state)}</div><div class="actions">
${url !== undefined && html`<a class="button small" href="${url}" aria-label="Open ${name}">Open</a>`}
${
  kind === 'managed' &&
  service.mayRestart &&
  actionForm(layout, {
    action: layout.urls.adminRestartService(name),
    label: 'Restart',
    accessibleLabel: `Restart ${name}`,
    style: 'small',
  })
}
${service.mayEdit && html`<a class="button small" href="${layout.urls.adminService(name, 'edit')}" aria-label="Edit ${name}">Edit</a>`}
${service.mayDelete && html`<a class="button small danger" href="${layout.urls.adminService(name, 'delete')}" aria-label="Delete ${name}">Delete…</a>`}</div></header>
${status.lastError !== undefined && state !== 'ready' && html`<p class="problem">${status.lastError}</p>`}
<dl class="facts">${facts(layout, service)}</dl>
${
  outputTail.length > 0 &&
  html`<details class="more"${state === 'crash_looping' && html` open`}><summary>Last output</summary>${outputBlock(outputTail)}</details>`
}
</article>`;
}

const accessWords = {
  service: 'Checked by the service',
  gateway: 'Checked by the gateway',
  public: 'Open to everyone',
} as const;

function facts({ now }: FormLayoutProps, { url, access, status }: AdminService): Html {
  const fact = (label: string, value: HtmlValue): Html =>
    html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  const { kind, startedAt, nextStartAt, lastExit, usage, pid, restarts } = status;
  return html`${url !== undefined && fact('Visitors', accessWords[access])}
${kind === 'external' && fact('Runs', 'Elsewhere')}
${status.instance !== undefined && fact('Runs at', status.instance)}
${startedAt && fact('Running since', timeElement(startedAt, now))}
${kind === 'managed' && fact('Restarts', restarts.toLocaleString('en'))}
${lastExit && fact('Last end', html`${exitWords(lastExit)}, ${timeElement(lastExit.at, now)}`)}
${nextStartAt && fact('Next start', timeElement(nextStartAt, now))}
${usage && html`${fact('CPU', formatCpu(usage.cpuCores))}${fact('Memory', formatBytes(usage.memoryBytes))}`}
${pid !== undefined && fact('Process', String(pid))}`;
}

function exitWords({ code, signal }: ServiceExit): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
}
