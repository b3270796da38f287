import type { ReportedGateway } from '../../../cluster/instances/instance-figures.ts';
import type { GatewayView, InstanceView } from '../../../cluster/instances/instance-overview.ts';
import type { InstanceLoads } from '../../../cluster/instances/load-reader.ts';
import type { LoadSpan } from '../../../platform/metrics/load-history.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadPlots, loadSection, spanQuery } from '../elements/load-plots.ts';
import {
  duration,
  formatBytes,
  formatCpu,
  formatNumber,
  timeElement,
} from '../elements/quantity.ts';
import { type Column, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** Above this, a gateway is behind. */
const usualLagMs = 3_000;
/** With more, the page would be too heavy with the plots of each. */
const maxPlotted = 3;

export interface InstancesPageView {
  readonly layout: FormLayoutProps;
  readonly instances: readonly InstanceView[];
  readonly loads: InstanceLoads;
  readonly span: LoadSpan;
}

/** The processes that are the hub together: where they are, what they own, and how busy they are. */
export function instancesPage({ layout, instances, loads, span }: InstancesPageView): Html {
  const hasPlots = instances.length > 1 && instances.length <= maxPlotted;
  return adminLayout(layout, {
    title: text`Instances`,
    tab: 'instances',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Instances`, leadOf(instances))}
${instances.map((view, index) => {
  const load = loads.byInstance.get(view.instance.id);
  const plots =
    load !== undefined &&
    hasPlots &&
    html`<details class="more"><summary>${text`Its load`}</summary>${loadPlots(load, { span })}</details>`;
  return instanceArticle(layout, view, { index, plots });
})}
<div id="load" data-live-seconds="10">${loadSection({
      report: loads.together,
      span,
      urlOf: (each) => layout.urls.adminInstances + spanQuery(each),
      title: instances.length === 1 ? text`Load of the hub` : text`Load of all instances together`,
    })}</div>`,
  });
}

function leadOf(instances: readonly InstanceView[]): Phrase {
  const down = instances.filter(({ isUp }) => !isUp).length;
  if (down > 0) {
    return message(
      '{count, plural, one {# instance of {total} is down. The others take over its services when its lease has ended.} other {# instances of {total} are down. The others take over their services when their leases have ended.}}',
      { count: down, total: instances.length },
    );
  }
  return instances.length === 1
    ? text`Running as a single instance. More on the same PostgreSQL database would share its work.`
    : text`The processes that share the database are one hub.`;
}

function instanceArticle(
  layout: FormLayoutProps,
  view: InstanceView,
  { index, plots }: { readonly index: number; readonly plots: HtmlValue },
): Html {
  const { instance, isHere, hasOtherSettings, problem } = view;
  return html`<article class="service" id="instance-${index}" data-live-seconds="5">
<header><div class="row"><h2>${instance.name}</h2>${statusOf(view)}${isHere && html`<span>${text`shows this page`}</span>`}</div></header>
${problem !== undefined && html`<p class="problem">${problem}</p>`}
${hasOtherSettings && view.isUp && html`<p class="problem">${text`Its settings differ from those of the instance that shows this page.`}</p>`}
<dl class="facts">${facts(layout, view)}</dl>
${
  view.gateways.length > 0 &&
  html`<h3>${text`Gateways`}</h3>
${table(text`Gateways of ${instance.name}`, gatewayColumns(layout), view.gateways)}`
}
${plots}
</article>`;
}

function gatewayColumns({ now }: FormLayoutProps): readonly Column<GatewayView>[] {
  const published =
    (show: (reported: NonNullable<GatewayView['reported']>) => HtmlValue) =>
    ({ reported }: GatewayView): HtmlValue =>
      reported === undefined
        ? html`<span class="soft">${text`Not told yet`}</span>`
        : show(reported);
  return [
    {
      label: text`Process`,
      style: 'name',
      cell: ({ name, isLocal, reported }) =>
        html`${name}<span class="under">${startedBy(isLocal, reported)}</span>`,
    },
    {
      label: text`Started`,
      cell: published(({ startedAtMs }) => timeElement(new Date(startedAtMs), now)),
    },
    { label: text`Version`, cell: ({ version }) => version },
    { label: text`Connections`, cell: published(connectionsOf) },
    { label: text`Requests`, cell: published(({ requests }) => formatNumber(requests)) },
    { label: text`Behind the hub`, cell: published(({ feedLagMs }) => lagOf(feedLagMs)) },
  ];
}

function startedBy(isLocal: boolean, reported: ReportedGateway | undefined): Phrase {
  if (reported === undefined) return isLocal ? text`Started by this hub` : text`Started by hand`;
  const [pid, { host }] = [String(reported.pid), reported];
  return isLocal
    ? text`Started by this hub, process ${pid} on ${host}`
    : text`Started by hand, process ${pid} on ${host}`;
}

function connectionsOf({ connections, webSockets }: ReportedGateway): Phrase {
  if (webSockets === 0) return formatNumber(connections);
  return message(
    '{connections, number}, {webSockets, plural, one {# WebSocket} other {# WebSockets}}',
    { connections, webSockets },
  );
}

/** A heartbeat comes each second, so it is never less than what has passed since the last one. */
function lagOf(lagMs: number): Html | Phrase {
  return lagMs <= usualLagMs
    ? text`Up to date`
    : html`<span class="status warn">${duration(lagMs / 1000)}</span>`;
}

function statusOf({ isUp, problem }: InstanceView): Html {
  if (!isUp) return html`<span class="status bad">${text`Down`}</span>`;
  return problem === undefined
    ? html`<span class="status good">${text`Up`}</span>`
    : html`<span class="status warn">${text`Does not answer`}</span>`;
}

function facts({ now }: FormLayoutProps, view: InstanceView): Html {
  const fact = (label: Phrase, value: HtmlValue): Html =>
    html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  const { instance, isUp, downSince, leaseUntil, owned, figures, problem } = view;
  const { servers, services } = owned;
  return html`${downSince !== undefined && fact(text`Last seen`, timeElement(downSince, now))}
${isUp && fact(text`Started`, timeElement(instance.startedAt, now))}
${leaseUntil !== undefined && (!isUp || problem !== undefined) && fact(leaseUntil > now ? text`Lease ends` : text`Lease ended`, timeElement(leaseUntil, now))}
${fact(text`Version`, instance.version)}
${fact(text`Machine`, instance.host)}
${fact(text`Process`, String(instance.process.pid))}
${fact(text`Address`, instance.url === undefined ? text`None` : new URL(instance.url).host)}
${fact(isUp ? text`Servers` : text`Servers left there`, formatNumber(servers))}
${fact(isUp ? text`Services` : text`Services left there`, services.length === 0 ? text`None` : services.join(', '))}
${
  figures !== undefined &&
  html`${fact(text`CPU`, formatCpu(figures.cpuCores))}${fact(text`Memory`, formatBytes(figures.memoryBytes))}${fact(text`Load of the machine`, message('{load} on {count, plural, one {# core} other {# cores}}', { load: formatNumber(figures.loadAverage, 1), count: figures.machineCores }))}`
}`;
}
