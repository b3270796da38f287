import { edgeFields } from '../../../operations/users-query.ts';
import { message, text } from '../../../platform/texts/text.ts';
import type { ListedHome } from '../../../workloads/servers/home-space-store.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatBytes, timeElement } from '../elements/quantity.ts';
import { type Column, type PageBorders, paging, table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';

export interface HomesView {
  readonly layout: FormLayoutProps;
  readonly homes: readonly ListedHome[];
  /** On all pages. */
  readonly total: number;
  readonly borders: PageBorders;
}

/** How full the homes of users are. */
export function homesPage({ layout, homes, total, borders }: HomesView): Html {
  const { urls, now } = layout;
  const columns: readonly Column<ListedHome>[] = [
    {
      label: text`User`,
      style: 'name',
      cell: ({ userName }) => html`<a href="${urls.adminUser(userName)}">${userName}</a>`,
    },
    {
      label: text`Used`,
      sort: 'descending',
      cell: ({ space }) => (space === undefined ? text`Not known` : formatBytes(space.usedBytes)),
    },
    {
      label: text`Capacity`,
      cell: ({ space }) => space !== undefined && formatBytes(space.totalBytes),
    },
    { label: text`Checked`, cell: ({ space }) => timeElement(space?.measuredAt, now) },
  ];
  return adminLayout(layout, {
    title: text`Home folders`,
    tab: 'usage',
    body: html`${pageHead(text`Home folders`, message('{count, plural, one {# user} other {# users}}', { count: total }), html`<a class="button" href="${urls.adminUsage}">${text`Back to use`}</a>`)}
<p class="soft">${text`Of users who have a server. The hub looks while a server runs; what containers, pods and jobs keep is not known to it.`}</p>
<section class="block">${
      homes.length === 0
        ? html`<p class="empty">${text`Nobody has a server yet.`}</p>`
        : table(text`Home folders`, columns, homes, { style: 'dense' })
    }
${paging({ total, shown: homes.length, borders, urlOf: (edge) => `${urls.adminHomes}?${new URLSearchParams(edgeFields(edge))}` })}</section>`,
  });
}
