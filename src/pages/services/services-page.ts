import { pageHead, pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import { type ServiceLink, serviceList } from './service-list.ts';

export interface ServicesView {
  readonly layout: LayoutProps;
  readonly services: readonly ServiceLink[];
}

/** Every service that the person may open. */
export function servicesPage({ layout, services }: ServicesView): Html {
  return pageLayout(layout, {
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
