import type { ScopeDescription } from '../../../identity/rbac/scope-descriptions.ts';
import { text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** One scope in plain words, with its restriction. */
export function scopePhrase({
  description,
  restriction,
}: Pick<ScopeDescription, 'description' | 'restriction'>): Html {
  if (restriction === undefined) return html`${description}`;
  return html`${description} <span class="soft">(${restriction})</span>`;
}

/** The names of scopes, folded away: for those who know them. */
export function scopeNames(scopes: readonly Pick<ScopeDescription, 'scope'>[]): HtmlValue {
  return (
    scopes.length > 0 &&
    html`<details class="more small"><summary>${text`Details`}</summary><div class="tags">${scopes.map(({ scope }) => html`<code>${scope}</code>`)}</div></details>`
  );
}
