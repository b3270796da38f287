import { layout, pageHead } from '../elements/layout.ts';
import type { PageFrame } from '../elements/page-frame.ts';
import { type Html, html } from '../html.ts';
import { type ServiceLink, serviceList } from './service-list.ts';

export interface ServicesView {
  readonly frame: PageFrame;
  readonly services: readonly ServiceLink[];
}

/** Every service that the person may open. */
export function servicesPage({ frame, services }: ServicesView): Html {
  return layout(frame, {
    title: 'Services',
    place: 'services',
    scripts: ['live-state.js'],
    body: html`${pageHead('Services', 'Shared tools on this hub. You are already logged in to all of them.')}
<div id="services" data-live-seconds="10">${
      services.length === 0
        ? html`<p class="empty">No service is open to you at the moment. An administrator can give you access.</p>`
        : serviceList(services)
    }</div>`,
  });
}
