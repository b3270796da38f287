import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import type { ServerSummary } from './server-summary.ts';

/** The servers of a user beside the default one. */
export interface NamedServers {
  readonly servers: readonly ServerSummary[];
  /** Most that a user may have; 0 for no limit. */
  readonly limit: number;
  /** What was wrong with the name that was sent. */
  readonly problem?: Phrase | undefined;
  readonly typedName?: string | undefined;
}

/** The form that makes another server, folded behind a button; or that there can be no more. */
export function newServerForm(
  { layout, userName }: { readonly layout: FormLayoutProps; readonly userName: string },
  { servers, limit, problem, typedName }: NamedServers,
): Html {
  if (limit > 0 && servers.length >= limit) {
    return html`<p class="small soft">${message('You have {count, plural, one {# named server} other {# named servers}}, the most you may have. Delete one to make another.', { count: servers.length })}</p>`;
  }
  return html`<details class="new"${problem !== undefined && html` open`}><summary class="button">${text`New server…`}</summary>
<p class="soft">${text`Run several servers side by side.`}</p>
<form class="inline-form" method="post" action="${layout.urls.createServer}">
${csrfField(layout)}${hiddenFields({ user: userName })}
${textField({
  name: 'name',
  label: text`Name of a new server`,
  value: typedName,
  problem,
  autocomplete: 'off',
  isLiteral: true,
  maxLength: 255,
  placeholder: text`thesis`,
})}
<button class="button">${text`Create server`}</button>
</form></details>`;
}
