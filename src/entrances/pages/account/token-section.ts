import type { ScopeDescription } from '../../../identity/rbac/scope-descriptions.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { timeElement } from '../elements/quantity.ts';
import { scopePhrase } from '../elements/scope-labels.ts';
import { copyableText } from '../elements/secret.ts';
import { type PagingView, paging, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import { type NewTokenView, newTokenForm } from './token-form-view.ts';

export interface TokenSection {
  /** A token just made; it cannot be shown again. */
  readonly newToken?: { readonly token: string; readonly note: string } | undefined;
  readonly tokens: readonly ApiToken[];
  readonly clients: readonly AuthorizedClient[];
  readonly pages: { readonly tokens: PagingView; readonly clients: PagingView };
  /** Undefined for who may make none. */
  readonly form: Omit<NewTokenView, 'layout'> | undefined;
  /** Whether the form is shown at once, and why: it was sent and needs a change, or an address filled it in. */
  readonly opened?: 'by hand' | 'by address' | undefined;
}

/** An access token that the user made on this page. */
export interface ApiToken {
  readonly id: string;
  readonly note: string;
  /** What it may do. */
  readonly may: readonly ScopeDescription[];
  readonly createdAt: Date;
  readonly lastUsedAt?: Date | undefined;
  readonly expiresAt?: Date | undefined;
}

/** An OAuth client that holds tokens of this person. */
export interface AuthorizedClient {
  readonly clientId: string;
  readonly name: Phrase;
  readonly may: readonly ScopeDescription[];
  readonly tokenCount: number;
  readonly firstAllowedAt: Date;
  readonly lastUsedAt?: Date | undefined;
}

/** Tokens made by hand and applications that were allowed to act for the person. */
export function tokenSection(layout: FormLayoutProps, section: TokenSection): Html {
  const { newToken, tokens, clients, pages } = section;
  return html`<section class="block" id="tokens"><h2>${text`Tokens`}</h2><p class="soft">${text`A token lets a script or another program use this hub as you. Treat it like a password.`}</p>
${newToken !== undefined && newTokenPanel(newToken)}
${newTokenForms(layout, section)}
${
  tokens.length === 0
    ? html`<p class="soft">${text`You have no tokens.`}</p>`
    : html`${tokenTable(layout, tokens)}${paging(pages.tokens)}`
}</section>
<section class="block" id="apps"><h2>${text`Authorized apps`}</h2>
<p class="soft">${text`Servers, services and devices that you let act for you. Revoking logs you out of them.`}</p>
${
  clients.length === 0
    ? html`<p class="soft">${text`None at the moment.`}</p>`
    : html`<ul class="list">${clients.map((client) => clientEntry(layout, client))}</ul>${paging({ ...pages.clients, label: text`Pages of the list of applications` })}`
}</section>`;
}

function newTokenForms(layout: FormLayoutProps, { form, opened }: TokenSection): HtmlValue {
  if (form === undefined) return false;
  return html`<details class="new"${opened !== undefined && html` open`}><summary class="button">${text`New token`}</summary><div class="panel stack">${opened === 'by address' && notice('info', text`This form was filled in by an address. Check it before you create the token.`)}${newTokenForm({ layout, ...form })}</div></details>`;
}

function newTokenPanel({ token, note }: { readonly token: string; readonly note: string }): Html {
  return html`<section class="panel once stack page-notice" aria-labelledby="new-token"><h3 id="new-token">${note === '' ? text`Your new token` : text`Your new token “${note}”`}</h3>
<p>${text`Copy it now: it is not shown again.`}</p>
${copyableText(token, text`New token`)}</section>`;
}

function tokenTable(layout: FormLayoutProps, tokens: readonly ApiToken[]): Html {
  const { now, urls } = layout;
  const ago = (moment: Date | undefined, none: HtmlValue): HtmlValue =>
    moment ? timeElement(moment, now) : html`<span class="soft">${none}</span>`;
  return table(
    text`Your tokens`,
    [
      {
        label: text`Note`,
        style: 'name',
        cell: ({ note, may }) =>
          html`${note || html`<span class="soft">${text`No note`}</span>`}${grantedLabels(may)}`,
      },
      { label: text`Last used`, cell: ({ lastUsedAt }) => ago(lastUsedAt, text`Never`) },
      { label: text`Created`, cell: ({ createdAt }) => ago(createdAt, '') },
      { label: text`Expires`, cell: ({ expiresAt }) => expiry(expiresAt, now) },
      {
        label: text`Actions`,
        style: 'end',
        cell: ({ id, note }) =>
          html`<div class="actions">${actionForm(layout, {
            action: urls.revokeToken,
            label: text`Revoke`,
            accessibleLabel: text`Revoke the token ${note}`,
            style: 'small danger',
            fields: { token_id: id },
          })}</div>`,
      },
    ],
    tokens,
  );
}

function expiry(expiresAt: Date | undefined, now: Date): HtmlValue {
  return expiresAt !== undefined && expiresAt <= now
    ? html`<span class="status bad">${text`Expired`}</span>`
    : timeElement(expiresAt, now);
}

function clientEntry(layout: FormLayoutProps, client: AuthorizedClient): Html {
  const { clientId, name, tokenCount, firstAllowedAt, lastUsedAt, may } = client;
  const { now, urls } = layout;
  const allowed = timeElement(firstAllowedAt, now);
  return html`<li><div class="what"><strong>${name}</strong>
<p>${lastUsedAt === undefined ? text`Allowed ${allowed}` : text`Allowed ${allowed}, last used ${timeElement(lastUsedAt, now)}`}${tokenCount > 1 && html` · ${message('{count, plural, one {# token} other {# tokens}}', { count: tokenCount })}`}</p>${grantedLabels(may)}</div>
${actionForm(layout, {
  action: urls.revokeClient,
  label: text`Revoke`,
  accessibleLabel: text`${text`Revoke`}: ${name}`,
  style: 'small danger',
  fields: { client_id: clientId },
})}</li>`;
}

const maxPhrases = 2;
const maxDetails = 5;

/** What is granted, short; all of it with the names of the scopes folded away. */
function grantedLabels(may: readonly ScopeDescription[]): HtmlValue {
  const short = may.slice(0, maxPhrases).map(scopePhrase);
  const more = may.length - maxPhrases;
  const left = may.length - maxDetails;
  return html`<span class="under">${may.length === 0 ? text`Nothing` : more > 0 ? text`${joinHtml(short, '; ')}; and ${more} more` : joinHtml(short, '; ')}</span>${
    may.length > 0 &&
    html`<details class="more small"><summary>${text`Details`}</summary><ul class="allows">${may.slice(0, maxDetails).map((each) => html`<li>${scopePhrase(each)} <code>${each.scope}</code></li>`)}${left > 0 && html`<li>${text`and ${left} more`}</li>`}</ul></details>`
  }`;
}
