import { text } from '../../../platform/texts/text.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatNumber } from '../elements/quantity.ts';
import { searchForm } from '../elements/search-form.ts';
import { type PageBorders, paging } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { PageUrls } from '../page-urls.ts';
import { type ServiceLink, serviceCards } from './service-list.ts';
import { type ServicesQuery, servicesUrl } from './services-query.ts';

export interface ServicesView {
  readonly layout: FormLayoutProps;
  readonly query: ServicesQuery;
  /** Those on this page, in the order in which they are shown. */
  readonly services: readonly ServiceLink[];
  readonly borders: PageBorders;
  /** Those that match, on all pages. */
  readonly total: number;
  /** Those on a page. */
  /** All that the person may open. */
  readonly accessible: number;
  /** Names of the groups of those that match the search, and how many are in each. */
  readonly groups: readonly (readonly [name: string, count: number])[];
}

/** From so many services on they are searched. */
const fewest = 9;
/** More would fill the page with groups. */
const maxGroups = 30;

/** Every service that the person may open. */
export function servicesPage(view: ServicesView): Html {
  const { layout, query, services, total, accessible } = view;
  const { urls } = layout;
  return pageLayout(layout, {
    title: text`Services`,
    place: 'services',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Services`, text`Shared tools on this hub. You are already logged in to all of them.`)}
${servicesSearch(urls, accessible, query)}
${groupChips(view)}
<div class="services" id="services" data-live-seconds="10">${services.length === 0 ? html`<p class="empty">${nothing(view)}</p>` : serviceCards(layout, services)}</div>
${paging({ total, shown: services.length, borders: view.borders, urlOf: (edge) => servicesUrl(urls.services, { ...query, edge }) })}`,
  });
}

/** The search of services; nothing where there are few. */
export function servicesSearch(
  urls: Pick<PageUrls, 'services'>,
  accessible: number,
  { search, group }: Pick<ServicesQuery, 'search' | 'group'> = { search: '', group: undefined },
): HtmlValue {
  if (accessible < fewest && search === '') return false;
  return searchForm(urls.services, { label: text`Find a service`, search, fields: { group } });
}

function groupChips({ layout: { urls }, query, groups }: ServicesView): HtmlValue {
  if (groups.length < 2 && query.group === undefined) return false;
  const chip = (group: string | undefined, content: HtmlValue): Html =>
    html`<a class="chip" href="${servicesUrl(urls.services, { ...query, group, edge: undefined })}"${group === query.group && html` aria-current="true"`}>${content}</a>`;
  return html`<nav class="chips" aria-label="${text`Groups`}">${chip(undefined, text`All`)}${groups
    .slice(0, maxGroups)
    .map(([name, count]) => chip(name, html`${name} <b>${formatNumber(count)}</b>`))}</nav>`;
}

function nothing({ accessible, query: { search, group } }: ServicesView): HtmlValue {
  if (accessible === 0) {
    return text`No service is open to you at the moment. An administrator can give you access.`;
  }
  if (search !== '') return text`Nothing that you may open matches “${search}”.`;
  return text`You may open no service of the group “${group ?? ''}”.`;
}
