import { edgeFields } from '../../../operations/users-query.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import {
  type ListedState,
  listedStates,
  type ServerSort,
} from '../../../workloads/servers/server-list-store.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadFigures } from '../elements/load-plots.ts';
import { formatNumber, timeElement } from '../elements/quantity.ts';
import { searchForm } from '../elements/search-form.ts';
import { type Column, type PageBorders, paging, sorting, table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';
import { withQuery } from '../page-urls.ts';
import { type ServerSummary, serverStatus, stateWord } from '../servers/server-summary.ts';

interface ServersQuery {
  /** Part of the name of a user; empty for any. */
  readonly search: string;
  readonly show?: ListedState | undefined;
  readonly sort: ServerSort;
}

export interface ServersView {
  readonly layout: FormLayoutProps;
  readonly query: ServersQuery;
  readonly servers: readonly (ServerSummary & { readonly mayStop: boolean })[];
  /** On all pages. */
  readonly total: number;
  readonly borders: PageBorders;
  /** Of the search, whatever state is shown. */
  readonly counts: Readonly<Record<ListedState | 'all', number>>;
  readonly mayStopMany: boolean;
}

/** The servers that run, start, stop or have failed, of all users. */
export function serversPage(view: ServersView): Html {
  const { layout, query, servers, total, borders, counts } = view;
  const url = layout.urls.adminServers;
  const { search, show } = query;
  const fieldsOf = ({ show, sort }: ServersQuery) => ({
    ...(show && { show }),
    ...(sort !== 'state' && { sort }),
  });
  const urlOf = (asked: ServersQuery, edge?: Parameters<typeof edgeFields>[0]) =>
    withQuery(url, {
      search: asked.search || undefined,
      ...fieldsOf(asked),
      ...edgeFields(edge),
    });
  const chip = (state: ListedState | undefined): Html =>
    html`<a class="chip${state === 'failed' && counts.failed > 0 && ' bad'}" href="${urlOf({ ...query, show: state })}"${state === show && html` aria-current="true"`}>${state === undefined ? text`All` : stateWord(state)} <b>${formatNumber(counts[state ?? 'all'])}</b></a>`;
  const list = table(text`Servers`, columns(view, urlOf), servers, {
    style: 'dense',
    keyOf: ({ userName, name }) => `${name}/${userName}`,
  });
  return adminLayout(layout, {
    title: text`Servers`,
    tab: 'servers',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Servers`, message('{count, plural, one {# server} other {# servers}}', { count: total }))}
${searchForm(url, { label: text`Find by user`, search, fields: fieldsOf(query) })}
<nav class="chips" aria-label="${text`Show`}">${[undefined, ...listedStates].map(chip)}</nav>
<section class="block" id="servers" data-live-seconds="10">${
      servers.length === 0
        ? html`<p class="empty">${text`There are no such servers now.`}</p>`
        : html`<form method="post" action="${layout.urls.adminActOnUsers}">${csrfField(layout)}${hiddenFields({ return_to: urlOf(query) })}
${view.mayStopMany && html`<div class="act-bar"><button class="button danger" name="act" value="stop">${text`Stop all servers of selected users`}</button><button class="button" name="act" value="stopIdle">${text`Stop their idle servers`}</button></div>`}
${list}</form>`
    }
${paging({ total, shown: servers.length, borders, urlOf: (edge) => urlOf(query, edge) })}</section>`,
  });
}

function columns(
  { layout, mayStopMany, query }: ServersView,
  urlOf: (asked: ServersQuery) => string,
): readonly Column<ServersView['servers'][number]>[] {
  const { urls, now } = layout;
  const sortedBy = (column: 'name' | 'state' | 'since' | 'activity', label: Phrase) =>
    sorting(column, label, {
      sort: query.sort,
      urlOf: (sort) => urlOf({ ...query, sort }),
      beginsWithLast: column === 'since' || column === 'activity',
    });
  const tick: Column<ServersView['servers'][number]> = {
    label: text`Tick`,
    style: 'tick',
    cell: ({ userName }) =>
      html`<label><input type="checkbox" name="user" value="${userName}" aria-label="${text`Tick ${userName}`}"></label>`,
  };
  return [
    ...(mayStopMany ? [tick] : []),
    {
      ...sortedBy('name', text`Server`),
      style: 'name',
      cell: ({ userName, name, failure }) =>
        html`<a href="${urls.server(userName, name)}">${userName}${name !== '' && ` / ${name}`}</a>${failure !== undefined && html`<span class="under">${failure}</span>`}`,
    },
    { ...sortedBy('state', text`State`), cell: serverStatus },
    {
      ...sortedBy('since', text`Since`),
      cell: ({ startedAt, stoppedAt, state }) =>
        timeElement(state === 'failed' ? stoppedAt : startedAt, now),
    },
    {
      ...sortedBy('activity', text`Last activity`),
      cell: ({ lastActivityAt }) => timeElement(lastActivityAt, now),
    },
    {
      label: text`CPU and memory`,
      cell({ load }) {
        const { cpuCores, memoryBytes } = loadFigures(load);
        return [cpuCores, memoryBytes].map((each) => html`<span class="one-word">${each}</span> `);
      },
    },
    {
      label: text`Actions`,
      style: 'end',
      cell: ({ userName, name, state, mayStop }) =>
        mayStop &&
        (state === 'running' || state === 'starting') &&
        html`<div class="actions"><button class="button small" formaction="${urls.stop(userName, name)}" aria-label="${text`Stop the server of ${userName}`}">${text`Stop`}</button></div>`,
    },
  ];
}
