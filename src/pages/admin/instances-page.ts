import type { ReportedGateway } from '../../instances/instance-figures.ts';
import type { GatewayView, InstanceView } from '../../instances/instance-overview.ts';
import type { InstanceLoads } from '../../instances/load-reader.ts';
import type { LoadSpan } from '../../metrics/load-history.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadPlots, loadSection, spanQuery } from '../elements/load-plots.ts';
import { formatBytes, formatCount, formatCpu } from '../elements/quantity.ts';
import { type Column, table } from '../elements/table.ts';
import { duration, timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

/** Above this, a gateway is behind. */
const usualLagMs = 3_000;
/** With more, the page would be too heavy with the plots of each. */
const mostPlotted = 3;

export interface InstancesPageView {
  readonly layout: FormLayoutProps;
  readonly instances: readonly InstanceView[];
  readonly loads: InstanceLoads;
  readonly span: LoadSpan;
}

/** The processes that are the hub together: where they are, what they own, and how busy they are. */
export function instancesPage({ layout, instances, loads, span }: InstancesPageView): Html {
  const hasPlots = instances.length > 1 && instances.length <= mostPlotted;
  return adminLayout(layout, {
    title: 'Instances',
    tab: 'instances',
    scripts: ['live-state.js'],
    body: html`${pageHead('Instances', leadOf(instances))}
${instances.map((view, index) => {
  const load = loads.byInstance.get(view.instance.id);
  const plots =
    load !== undefined &&
    hasPlots &&
    html`<details class="more"><summary>Its load</summary>${loadPlots(load, { span })}</details>`;
  return instanceArticle(layout, view, { index, plots });
})}
<div id="load" data-live-seconds="10">${loadSection({
      report: loads.together,
      span,
      urlOf: (each) => layout.urls.adminInstances + spanQuery(each),
      title: instances.length === 1 ? 'Load of the hub' : 'Load of all instances together',
    })}</div>`,
  });
}

function leadOf(instances: readonly InstanceView[]): string {
  const down = instances.filter(({ isUp }) => !isUp).length;
  if (down > 0) {
    return `${formatCount(down, 'instance')} of ${instances.length} ${down === 1 ? 'is' : 'are'} down. The others take over its services when its lease has ended.`;
  }
  return instances.length === 1
    ? 'One process is the hub. More on the same PostgreSQL database would share its work.'
    : 'The processes that share the database are one hub.';
}

function instanceArticle(
  layout: FormLayoutProps,
  view: InstanceView,
  { index, plots }: { readonly index: number; readonly plots: HtmlValue },
): Html {
  const { instance, isHere, hasOtherSettings, problem } = view;
  return html`<article class="service" id="instance-${index}" data-live-seconds="5">
<header><div class="row"><h2>${instance.name}</h2>${statusOf(view)}${isHere && html`<span>shows this page</span>`}</div></header>
${problem !== undefined && html`<p class="problem">${problem}</p>`}
${hasOtherSettings && view.isUp && html`<p class="problem">Its settings differ from those of the instance that shows this page.</p>`}
<dl class="facts">${facts(layout, view)}</dl>
${
  view.gateways.length > 0 &&
  html`<h3>Gateways</h3>
${table(`Gateways of ${instance.name}`, gatewayColumns(layout), view.gateways)}`
}
${plots}
</article>`;
}

function gatewayColumns({ now }: FormLayoutProps): readonly Column<GatewayView>[] {
  const told =
    (show: (reported: NonNullable<GatewayView['reported']>) => HtmlValue) =>
    ({ reported }: GatewayView): HtmlValue =>
      reported === undefined ? html`<span class="soft">Not told yet</span>` : show(reported);
  return [
    {
      label: 'Process',
      style: 'name',
      cell: ({ name, isLocal, reported }) =>
        html`${name}<span class="under">${isLocal ? 'Started by this hub' : 'Started by hand'}${reported && html`, process ${String(reported.pid)} on ${reported.host}`}</span>`,
    },
    { label: 'Started', cell: told(({ startedAtMs }) => timeElement(new Date(startedAtMs), now)) },
    { label: 'Version', cell: ({ version }) => version },
    { label: 'Connections', cell: told(connectionsOf) },
    { label: 'Requests', cell: told(({ requests }) => requests.toLocaleString('en')) },
    { label: 'Behind the hub', cell: told(({ feedLagMs }) => lagOf(feedLagMs)) },
  ];
}

function connectionsOf({ connections, webSockets }: ReportedGateway): string {
  const open = connections.toLocaleString('en');
  return webSockets === 0 ? open : `${open}, ${formatCount(webSockets, 'WebSocket')}`;
}

/** A heartbeat comes each second, so it is never less than what has passed since the last one. */
function lagOf(lagMs: number): Html | string {
  return lagMs <= usualLagMs
    ? 'Up to date'
    : html`<span class="status warn">${duration(lagMs / 1000)}</span>`;
}

function statusOf({ isUp, problem }: InstanceView): Html {
  if (!isUp) return html`<span class="status bad">Down</span>`;
  return problem === undefined
    ? html`<span class="status good">Up</span>`
    : html`<span class="status warn">Does not answer</span>`;
}

function facts({ now }: FormLayoutProps, view: InstanceView): Html {
  const fact = (label: string, value: HtmlValue): Html =>
    html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  const { instance, isUp, downSince, leaseUntil, owned, figures, problem } = view;
  const { servers, services } = owned;
  return html`${downSince !== undefined && fact('Last seen', timeElement(downSince, now))}
${isUp && fact('Started', timeElement(instance.startedAt, now))}
${leaseUntil !== undefined && (!isUp || problem !== undefined) && fact(leaseUntil > now ? 'Lease ends' : 'Lease ended', timeElement(leaseUntil, now))}
${fact('Version', instance.version)}
${fact('Machine', instance.host)}
${fact('Process', String(instance.process.pid))}
${fact('Address', instance.url === undefined ? 'None' : new URL(instance.url).host)}
${fact(isUp ? 'Servers' : 'Servers left there', servers.toLocaleString('en'))}
${fact(isUp ? 'Services' : 'Services left there', services.length === 0 ? 'None' : services.join(', '))}
${
  figures !== undefined &&
  html`${fact('CPU', formatCpu(figures.cpuCores))}${fact('Memory', formatBytes(figures.memoryBytes))}${fact('Load of the machine', `${figures.loadAverage.toFixed(1)} on ${formatCount(figures.machineCores, 'core')}`)}`
}`;
}
