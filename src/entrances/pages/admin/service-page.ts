import type { LoadReport } from '../../../cluster/instances/load-reader.ts';
import type { ProviderEndpoints } from '../../../identity/oauth/endpoints/metadata-endpoint.ts';
import type { LoadSpan } from '../../../platform/metrics/load-history.ts';
import { serviceTitle } from '../../../platform/protocol/service-title.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { Service } from '../../../workloads/services/service.ts';
import type { PlacedStatus, ServiceExit } from '../../../workloads/services/service-status.ts';
import { addressElement } from '../elements/address.ts';
import { adminLink } from '../elements/admin-link.ts';
import { accessLabels } from '../elements/code-labels.ts';
import { actionForm } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { liveOutput } from '../elements/live-output.ts';
import { loadSection, spanQuery } from '../elements/load-plots.ts';
import {
  duration,
  formatBytes,
  formatCpu,
  formatNumber,
  formatSeconds,
  timeElement,
} from '../elements/quantity.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import { serviceStatus } from '../services/service-list.ts';
import { type AccessView, accessSection } from './access-page.ts';
import { clientSection } from './client-setup.ts';
import { headerFacts, headersFormOf } from './service-headers.ts';
import { limitFacts, limitsFormOf } from './service-limits.ts';

/** A service as an administrator sees it. */
export interface AdminServiceView {
  readonly layout: FormLayoutProps;
  readonly service: Service;
  /** Of the hub, for the app that logs its users in by it. */
  readonly endpoints: ProviderEndpoints;
  readonly status: PlacedStatus;
  /** Where users open it, when it has pages. */
  readonly url?: string | undefined;
  /** Names of the roles whose holders may open it; undefined for who may not know. */
  readonly openedBy?: readonly string[] | undefined;
  /** Undefined for who may not read it. */
  readonly access?: AccessView | undefined;
  readonly load: LoadReport;
  readonly span: LoadSpan;
  /** The last lines it wrote; undefined for who may not read them, and for an external service. */
  readonly output?:
    | { readonly url: string; readonly lines: readonly string[]; readonly problem?: Phrase }
    | undefined;
  readonly may: {
    /** Start, stop and restart it. */
    readonly run: boolean;
    /** Of one that was added at run time. */
    readonly edit: boolean;
    readonly delete: boolean;
  };
}

/** How one service is, what it is, and what it writes. */
export function adminServicePage(view: AdminServiceView): Html {
  const { layout, service, status, output } = view;
  const name = service.name;
  const displayName = serviceTitle(service);
  return adminLayout(layout, {
    title: displayName,
    tab: 'services',
    scripts: ['live-state.js', 'live-output.js', 'copy-button.js'],
    body: html`<div id="service" data-live-seconds="5">
${pageHead(displayName, displayName === name ? undefined : name, actions(view))}
<p class="row">${serviceStatus(status.state)}${stateSince(layout, status)}</p>
${!status.isReady && status.lastError !== undefined && html`<p class="problem">${status.lastError}</p>`}
<dl class="facts wide">${figures(layout, status)}${facts(view)}</dl>
${loadSection({
  report: view.load,
  span: view.span,
  isProcess: service.launch !== undefined,
  urlOf: (span) => layout.urls.adminService(name) + spanQuery(span),
})}
</div>
${output !== undefined && liveOutput(output)}
${clientSection(service, view.endpoints)}
${accessSection(layout, view.access, layout.urls.adminService(name))}`,
  });
}

/** Since when it is in its state, and for one that was stopped by hand, by whom. */
export function stateSince(
  { now }: Pick<FormLayoutProps, 'now'>,
  { since, stopped }: PlacedStatus,
): HtmlValue {
  if (since === undefined) return undefined;
  const time = timeElement(since, now);
  return html`<span class="soft">${stopped?.by === undefined ? time : text`${time} by ${stopped.by}`}</span>`;
}

function actions({ layout, service, status, url, may }: AdminServiceView): Html {
  const { urls } = layout;
  const { name } = service;
  const isStopped = status.stopped !== undefined;
  const isRun = service.kind === 'managed' && may.run;
  const act = (action: 'start' | 'stop' | 'restart', label: Phrase, style = '') =>
    actionForm(layout, { action: urls.adminService(name, action), label, style });
  return html`<div class="actions">
${url !== undefined && html`<a class="button${!isStopped && ' primary'}" href="${url}">${text`Open`}</a>`}
${isRun && (isStopped ? act('start', text`Start`, 'primary') : html`${act('restart', text`Restart`)}${act('stop', text`Stop`)}`)}
${may.edit && html`<a class="button" href="${urls.adminService(name, 'edit')}">${text`Edit`}</a>`}
${may.delete && html`<a class="button danger" href="${urls.adminService(name, 'delete')}">${text`Delete…`}</a>`}</div>`;
}

const fact = (label: Phrase, value: HtmlValue): Html =>
  html`<div><dt>${label}</dt><dd>${value}</dd></div>`;

/** What changes while it runs. */
function figures({ now }: FormLayoutProps, status: PlacedStatus): Html {
  const { kind, instance, startedAt, nextStartAt, lastExit, usage, pid, restarts, answeredInMs } =
    status;
  return html`${fact(text`Runs at`, instance ?? (kind === 'external' ? text`External` : text`No instance of the hub`))}
${startedAt && fact(text`Running since`, timeElement(startedAt, now))}
${usage && html`${fact(text`CPU`, formatCpu(usage.cpuCores))}${fact(text`Memory`, formatBytes(usage.memoryBytes))}`}
${pid !== undefined && fact(text`Process`, processLabels(pid, usage?.processes ?? 1))}
${kind === 'managed' && fact(text`Restarts`, formatNumber(restarts))}
${lastExit && fact(text`Last end`, exitLabels(lastExit, timeElement(lastExit.at, now)))}
${answeredInMs !== undefined && fact(text`Response time`, formatSeconds(answeredInMs / 1000))}
${nextStartAt && fact(text`Next start`, timeElement(nextStartAt, now))}`;
}

/** What it is. */
function facts({ layout, service, url, openedBy }: AdminServiceView): Html {
  const { launch, access, source } = service;
  return html`${url !== undefined && fact(text`Visitors`, accessLabels[access])}
${
  url !== undefined &&
  access !== 'public' &&
  openedBy &&
  fact(
    text`Opened by`,
    openedBy.length === 0
      ? text`No role`
      : text`roles ${joinHtml(
          openedBy.map((role) => adminLink(layout, 'role', role)),
          ', ',
        )}`,
  )
}
${service.url !== undefined && fact(text`Address`, addressElement(service.url))}
${launch !== undefined && fact(text`Folder`, html`<code>${launch.workingDirectory}</code>`)}
${launch?.user !== undefined && fact(text`Account`, launch.user)}
${launch !== undefined && fact(text`Limits`, text`${duration(service.readyTimeoutMs / 1000)} to become ready, ${duration(launch.stopGraceMs / 1000)} to end`)}
${[...limitFacts(limitsFormOf(service.limits)), ...headerFacts(headersFormOf(service.forwarding?.headers))].map(({ label, value }) => fact(label, value))}
${fact(text`Comes from`, source === 'api' ? text`Added at run time` : text`The configuration file`)}
${launch !== undefined && html`<div class="whole"><dt>${text`Command`}</dt><dd><code>${launch.command.join(' ')}</code></dd></div>`}`;
}

function processLabels(pid: number, count: number): Phrase {
  return count > 1 ? text`${String(pid)} and ${count - 1} more` : String(pid);
}

function exitLabels({ code, signal }: ServiceExit, time: Html): Phrase {
  return signal === null
    ? text`exit code ${String(code)}, ${time}`
    : text`signal ${signal}, ${time}`;
}
