import type { InstanceView } from '../../instances/instance-overview.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatBytes, formatCount, formatCpu } from '../elements/quantity.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface InstancesPageView {
  readonly layout: FormLayoutProps;
  readonly instances: readonly InstanceView[];
}

/** The processes that are the hub together: where they are, what they own, and how busy they are. */
export function instancesPage({ layout, instances }: InstancesPageView): Html {
  return adminLayout(layout, {
    title: 'Instances',
    tab: 'instances',
    scripts: ['live-state.js'],
    body: html`${pageHead('Instances', leadOf(instances))}
${instances.map((view, index) => instanceArticle(layout, view, index))}`,
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

function instanceArticle(layout: FormLayoutProps, view: InstanceView, index: number): Html {
  const { instance, isHere, hasOtherSettings, problem } = view;
  return html`<article class="service" id="instance-${index}" data-live-seconds="5">
<header><div class="row"><h2>${instance.name}</h2>${statusOf(view)}${isHere && html`<span>shows this page</span>`}</div></header>
${problem !== undefined && html`<p class="problem">${problem}</p>`}
${hasOtherSettings && view.isUp && html`<p class="problem">Its settings differ from those of the instance that shows this page.</p>`}
<dl class="facts">${facts(layout, view)}</dl>
</article>`;
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
  const { instance, isUp, downSince, leaseUntil, owned, figures } = view;
  const { servers, services } = owned;
  return html`${downSince !== undefined && fact('Down since', timeElement(downSince, now))}
${isUp && fact('Running since', timeElement(instance.startedAt, now))}
${leaseUntil !== undefined && fact('Lease until', timeElement(leaseUntil, now))}
${fact('Version', instance.version)}
${fact('Machine', instance.host)}
${fact('Process', String(instance.process.pid))}
${fact('Address', instance.url === undefined ? 'Reached by no other' : new URL(instance.url).host)}
${fact(isUp ? 'Servers' : 'Servers left there', servers.toLocaleString('en'))}
${fact(isUp ? 'Services' : 'Services left there', services.length === 0 ? 'None' : services.join(', '))}
${
  figures !== undefined &&
  html`${fact('CPU', formatCpu(figures.cpuCores))}${fact('Memory', formatBytes(figures.memoryBytes))}${fact('Load of the machine', `${figures.loadAverage.toFixed(1)} on ${formatCount(figures.machineCores, 'core')}`)}`
}`;
}
