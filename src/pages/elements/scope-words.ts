import type { ScopeDescription } from '../../rbac/scope-descriptions.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** One scope in plain words, with its restriction. */
export function scopePhrase({
  description,
  restriction,
}: Pick<ScopeDescription, 'description' | 'restriction'>): Html {
  return html`${description}${restriction !== undefined && html` <span class="soft">(${restriction})</span>`}`;
}

/** The names of scopes, folded away: for those who know them. */
export function scopeNames(
  scopes: readonly Pick<ScopeDescription, 'scope'>[],
  label = 'Details',
): HtmlValue {
  return (
    scopes.length > 0 &&
    html`<details class="more small"><summary>${label}</summary><div class="tags">${scopes.map(({ scope }) => html`<code>${scope}</code>`)}</div></details>`
  );
}
