import { auditActions } from '../../audit/actions.ts';
import type { AuditEntry } from '../../audit/deed.ts';
import { auditTable } from '../elements/audit-table.ts';
import { selectField, textField } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

/** What was asked for, as it was typed; empty texts narrow nothing. */
export interface ActivityFilter {
  readonly actor: string;
  readonly target: string;
  readonly action: string;
  readonly result: string;
  readonly since: string;
  readonly until: string;
}

export interface ActivityView {
  readonly layout: LayoutProps;
  readonly entries: readonly AuditEntry[];
  readonly filter: ActivityFilter;
  /** Of the next page, with older entries; undefined at the end. */
  readonly next: string | undefined;
  readonly isFirstPage: boolean;
}

/** Who did what, newest first. */
export function activityPage(view: ActivityView): Html {
  const { layout, entries, filter } = view;
  const isNarrowed = Object.values(filter).some((text) => text !== '');
  return adminLayout(layout, {
    title: 'Activity',
    tab: 'activity',
    body: html`${pageHead('Activity', 'Who did what, from where and with what result, newest first. Days are those of UTC.')}
<form class="inline-form" method="get" action="${layout.urls.adminActivity}" role="search">
${textField({ name: 'actor', label: 'By', value: filter.actor })}
${textField({ name: 'target', label: 'To', value: filter.target })}
${selectField({
  name: 'action',
  label: 'Action',
  value: filter.action,
  choices: [
    { value: '', label: 'All' },
    ...Object.keys(auditActions)
      .sort()
      .map((name) => ({ value: name, label: name })),
  ],
})}
${selectField({
  name: 'result',
  label: 'Result',
  value: filter.result,
  choices: [
    { value: '', label: 'All' },
    { value: 'done', label: 'Done' },
    { value: 'refused', label: 'Refused' },
    { value: 'failed', label: 'Failed' },
  ],
})}
${dateField('since', 'From the day', filter.since)}
${dateField('until', 'Before the day', filter.until)}
<button class="button">Show</button>
</form>
<section class="block">${
      entries.length === 0
        ? html`<p class="empty">${isNarrowed ? 'Nothing matches.' : 'Nothing has been recorded yet.'}</p>`
        : auditTable(layout, entries, { caption: 'Activity', isForAdministrators: true })
    }${paging(view)}</section>`,
  });
}

function dateField(name: string, label: string, value: string): Html {
  return html`<div class="field"><label for="field-${name}">${label}</label><input class="input" id="field-${name}" name="${name}" type="date" value="${value}"></div>`;
}

function urlOf({ layout, filter }: ActivityView, after?: string): string {
  const query = new URLSearchParams();
  for (const [name, text] of Object.entries(filter)) if (text !== '') query.set(name, text);
  if (after !== undefined) query.set('after', after);
  return query.size === 0 ? layout.urls.adminActivity : `${layout.urls.adminActivity}?${query}`;
}

function paging(view: ActivityView): HtmlValue {
  const { next, isFirstPage } = view;
  if (next === undefined && isFirstPage) return false;
  return html`<nav class="pages" aria-label="Pages of the list"><div class="actions">
${!isFirstPage && html`<a class="button small" href="${urlOf(view)}">Newest</a>`}
${next !== undefined && html`<a class="button small" href="${urlOf(view, next)}" rel="next">Older</a>`}
</div></nav>`;
}
