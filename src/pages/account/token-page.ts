import { actionForm, type Choice, csrfField, selectField, textField } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatCount } from '../elements/quantity.ts';
import { copyableText } from '../elements/secret.ts';
import { table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface TokenView {
  readonly layout: FormLayoutProps;
  /** A token just made; it cannot be shown again. */
  readonly newToken?: { readonly token: string; readonly note: string } | undefined;
  readonly tokens: readonly ApiToken[];
  readonly clients: readonly AuthorizedClient[];
  /** Lifetimes to choose from; the form sends `expires_in`. */
  readonly lifetimes: readonly Choice[];
  readonly typed?:
    | { readonly note?: string; readonly expires_in?: string; readonly scopes?: string }
    | undefined;
  /** Why no token was made, where that lies with no field. */
  readonly error?: string | undefined;
  readonly problems?:
    | { readonly note?: string | undefined; readonly scopes?: string | undefined }
    | undefined;
}

/** An access token that the user made on this page. */
export interface ApiToken {
  readonly id: string;
  readonly note: string;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly lastUsedAt?: Date | undefined;
  readonly expiresAt?: Date | undefined;
}

/** An OAuth client that holds tokens of this person. */
export interface AuthorizedClient {
  readonly clientId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly tokenCount: number;
  readonly firstAllowedAt: Date;
  readonly lastUsedAt?: Date | undefined;
}

/** Tokens made by hand and applications that were allowed to act for the person. */
export function tokenPage(view: TokenView): Html {
  const { layout, newToken, tokens, clients } = view;
  return pageLayout(layout, {
    title: 'Tokens',
    place: 'tokens',
    scripts: newToken === undefined ? [] : ['copy-button.js'],
    body: html`${pageHead('Tokens', 'A token lets a script or another program use this hub as you. Treat it like a password.')}
${newToken !== undefined && newTokenPanel(newToken)}
<section>${requestForm(view)}</section>
<section class="block"><h2>Your tokens</h2>${
      tokens.length === 0
        ? html`<p class="soft">You have no tokens.</p>`
        : tokenTable(layout, tokens)
    }</section>
<section class="block"><h2>Applications you allowed</h2>
<p class="soft">Servers and services that act for you since you opened them. Taking this back logs you out of them.</p>
${
  clients.length === 0
    ? html`<p class="soft">None at the moment.</p>`
    : html`<ul class="list">${clients.map((client) => clientEntry(layout, client))}</ul>`
}</section>`,
  });
}

function newTokenPanel({ token, note }: { readonly token: string; readonly note: string }): Html {
  return html`<section class="panel once stack page-notice" aria-labelledby="new-token"><h2 id="new-token">Your new token${note !== '' && html` “${note}”`}</h2>
<p>Copy it now: it is not shown again.</p>
${copyableText(token, 'New token')}</section>`;
}

function requestForm({ layout, lifetimes, typed, error, problems }: TokenView): Html {
  const scopes = textField({
    name: 'scopes',
    label: 'Scopes',
    value: typed?.scopes,
    isOptional: true,
    autocomplete: 'off',
    isLiteral: true,
    placeholder: 'read:users!user servers!user',
    help: 'Separated by spaces. Left empty, the token may do everything you may do.',
    problem: problems?.scopes,
  });
  return html`<form class="fields" method="post" action="${layout.urls.tokens}">
${csrfField(layout)}
${error !== undefined && notice('bad', html`${error} Revoke one that you no longer need.`)}
${textField({
  name: 'note',
  label: 'What is it for?',
  value: typed?.note,
  isOptional: true,
  autocomplete: 'off',
  maxLength: 200,
  placeholder: 'Nightly report',
  help: 'Helps you to know later which token is which.',
  problem: problems?.note,
})}
${selectField({ name: 'expires_in', label: 'How long should it work?', choices: lifetimes, value: typed?.expires_in })}
<details class="more"${(problems?.scopes !== undefined || typed?.scopes) && html` open`}><summary>Limit what it may do</summary>${scopes}</details>
<div class="actions"><button class="button primary">Create token</button></div>
</form>`;
}

function tokenTable(layout: FormLayoutProps, tokens: readonly ApiToken[]): Html {
  const { now, urls } = layout;
  const ago = (moment: Date | undefined, none: string): HtmlValue =>
    moment ? timeElement(moment, now) : html`<span class="soft">${none}</span>`;
  return table(
    'Your tokens',
    [
      {
        label: 'Note',
        style: 'name',
        cell: ({ note, scopes }) =>
          html`${note || html`<span class="soft">No note</span>`}${scopeTags(scopes)}`,
      },
      { label: 'Last used', cell: ({ lastUsedAt }) => ago(lastUsedAt, 'Never') },
      { label: 'Created', cell: ({ createdAt }) => ago(createdAt, '') },
      { label: 'Expires', cell: ({ expiresAt }) => expiry(expiresAt, now) },
      {
        label: 'Actions',
        style: 'end',
        cell: ({ id, note }) =>
          html`<div class="actions">${actionForm(layout, {
            action: urls.revokeToken,
            label: 'Revoke',
            accessibleLabel: `Revoke the token ${note}`,
            style: 'small danger',
            fields: { token_id: id },
          })}</div>`,
      },
    ],
    tokens,
  );
}

function expiry(expiresAt: Date | undefined, now: Date): HtmlValue {
  if (expiresAt === undefined) return html`<span class="soft">Never</span>`;
  return expiresAt <= now
    ? html`<span class="status bad">Expired</span>`
    : timeElement(expiresAt, now);
}

function clientEntry(layout: FormLayoutProps, client: AuthorizedClient): Html {
  const { clientId, name, scopes, tokenCount, firstAllowedAt, lastUsedAt } = client;
  const { now, urls } = layout;
  return html`<li><div class="what"><strong>${name}</strong>
<p>Allowed ${timeElement(firstAllowedAt, now)}${lastUsedAt && html`, last used ${timeElement(lastUsedAt, now)}`}${tokenCount > 1 && html`, ${formatCount(tokenCount, 'token')}`}</p>${scopeTags(scopes)}</div>
${actionForm(layout, {
  action: urls.revokeClient,
  label: 'Take back',
  accessibleLabel: `Take back what ${name} may do`,
  style: 'small danger',
  fields: { client_id: clientId },
})}</li>`;
}

const shownScopes = 6;

/** Scopes as small marks; a long list ends with how many more there are. */
function scopeTags(scopes: readonly string[]): HtmlValue {
  if (scopes.length === 0) return false;
  const more = scopes.length - shownScopes;
  return html`<div class="tags">${scopes.slice(0, shownScopes).map((scope) => html`<code>${scope}</code>`)}${more > 0 && html`<span class="tag" title="${scopes.slice(shownScopes).join(' ')}">and ${more} more</span>`}</div>`;
}
