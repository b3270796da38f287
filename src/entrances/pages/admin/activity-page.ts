import { actionLabels } from '../../../platform/audit/action-labels.ts';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type SessionEntry, sessionList } from '../account/session-list.ts';
import { adminLink } from '../elements/admin-link.ts';
import { auditTable } from '../elements/audit-table.ts';
import { actionForm, selectField, textField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { AdminUserAction } from '../page-urls.ts';

/** What was asked for, as it was typed; empty texts narrow nothing. */
export interface ActivityFilter {
  readonly actor: string;
  readonly target: string;
  readonly action: string;
  readonly address: string;
  readonly result: string;
  readonly since: string;
  readonly until: string;
}

export interface ActivityView {
  readonly layout: FormLayoutProps;
  readonly entries: readonly AuditEntry[];
  readonly filter: ActivityFilter;
  /** Of the next page, with older entries; undefined at the end. */
  readonly next: string | undefined;
  readonly isFirstPage: boolean;
  /** The user whose activity it is. */
  readonly about:
    | {
        readonly name: string;
        readonly isSuspended: boolean;
        readonly sessions: readonly SessionEntry[];
      }
    | undefined;
  /** What the reader may do with that user. */
  readonly may: { readonly endSessions: boolean; readonly suspend: boolean };
}

/** Who did what, newest first. */
export function activityPage(view: ActivityView): Html {
  const { layout, entries, filter } = view;
  const isNarrowed = Object.values(filter).some((typed) => typed !== '');
  return adminLayout(layout, {
    title: text`Activity`,
    tab: 'activity',
    body: html`${pageHead(text`Activity`, text`Everything that happened, newest first. Dates are in UTC.`)}
<form class="inline-form" method="get" action="${layout.urls.adminActivity}" role="search">
${textField({ name: 'actor', label: text`Actor`, value: filter.actor })}
${textField({ name: 'target', label: text`Target`, value: filter.target })}
${selectField({
  name: 'action',
  label: text`Action`,
  value: filter.action,
  choices: [
    { value: '', label: text`All` },
    ...Object.entries(actionLabels).map(([value, label]) => ({ value, label })),
  ],
})}
${selectField({
  name: 'result',
  label: text`Result`,
  value: filter.result,
  choices: [
    { value: '', label: text`All` },
    { value: 'done', label: text`Done` },
    { value: 'refused', label: text`Refused` },
    { value: 'failed', label: text`Failed` },
  ],
})}
${textField({ name: 'address', label: text`Address`, value: filter.address })}
${dateField('since', text`From`, filter.since)}
${dateField('until', text`Until`, filter.until)}
<button class="button">${text`Show`}</button>
</form>
${concerned(view)}
<section class="block">${
      entries.length === 0
        ? html`<p class="empty">${isNarrowed ? text`Nothing matches.` : text`Nothing has been recorded yet.`}</p>`
        : auditTable(layout, entries, {
            caption: text`Activity`,
            isForAdministrators: true,
            sessions: view.about?.sessions,
          })
    }${paging(view)}${entries.length > 0 && html`<div class="pages">${actionForm(layout, { action: layout.urls.adminActivityExport, label: text`Export as CSV`, style: 'small', fields: { ...filter } })}</div>`}</section>`,
  });
}

/** Where the user is logged in, and what stops them. */
function concerned({ layout, about, may }: ActivityView): HtmlValue {
  if (about === undefined || !(may.endSessions || may.suspend)) return false;
  const { name, isSuspended, sessions } = about;
  const to = (action: AdminUserAction) => layout.urls.adminUser(name, action);
  return html`<section class="block"><h2>${text`Logins of ${adminLink(layout, 'user', name)}`}</h2>
${sessions.length === 0 ? html`<p class="soft">${text`Not logged in anywhere.`}</p>` : may.endSessions && sessionList(layout, sessions, { endUrl: to('end-session') })}
<div class="pages"><div class="actions">${may.endSessions && sessions.length > 0 && actionForm(layout, { action: to('end-sessions'), label: text`End all logins`, style: 'small danger' })}${
    may.suspend &&
    (isSuspended
      ? actionForm(layout, {
          action: to('unsuspend'),
          label: text`End suspension`,
          style: 'small',
        })
      : actionForm(layout, {
          action: to('suspend'),
          label: text`Suspend`,
          accessibleLabel: text`Suspend ${name}`,
          style: 'small danger',
        }))
  }</div></div></section>`;
}

function dateField(name: string, label: Phrase, value: string): Html {
  return html`<div class="field"><label for="field-${name}">${label}</label><input class="input" id="field-${name}" name="${name}" type="date" value="${value}"></div>`;
}

function urlOf({ layout, filter }: ActivityView, after?: string): string {
  const query = new URLSearchParams();
  for (const [name, typed] of Object.entries(filter)) if (typed !== '') query.set(name, typed);
  if (after !== undefined) query.set('after', after);
  return query.size === 0 ? layout.urls.adminActivity : `${layout.urls.adminActivity}?${query}`;
}

function paging(view: ActivityView): HtmlValue {
  const { next, isFirstPage } = view;
  if (next === undefined && isFirstPage) return false;
  return html`<nav class="pages" aria-label="${text`Pages of the list`}"><div class="actions">
${!isFirstPage && html`<a class="button small" href="${urlOf(view)}">${text`Newest`}</a>`}
${next !== undefined && html`<a class="button small" href="${urlOf(view, next)}" rel="next">${text`Older`}</a>`}
</div></nav>`;
}
