import { text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, html } from '../html.ts';

export interface OpenServerView {
  readonly layout: FormLayoutProps;
  /** Whose server it is. */
  readonly ownerName: string;
  /** Empty for the default one. */
  readonly serverName: string;
  /** The page wanted, a path of that server. */
  readonly next: string;
  /** Of the server guard that sent the browser, if one did. */
  readonly state?: string | undefined;
}

/** Asks before a browser opens another user's server. */
export function openServerPage({
  layout,
  ownerName,
  serverName,
  next,
  state,
}: OpenServerView): Html {
  const title = text`Open the server of ${ownerName}?`;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1>${serverName !== '' && html`<p class="lead">${text`The server is called ${serverName}.`}</p>`}</header>
${notice(
  'warn',
  html`<div class="stack"><p>${text`This server belongs to ${html`<b>${ownerName}</b>`}, who decides what runs on it.`}</p><p>${text`${ownerName} controls everything on these pages. Continue only if you trust them, and never enter a password there.`}</p></div>`,
)}
<form class="fields" method="post" action="${layout.urls.openServer}">
${csrfField(layout)}${hiddenFields(state === undefined ? { next } : { next, state })}
<div class="decision"><a class="button" href="${layout.urls.home}">${text`Cancel`}</a><button class="button primary" name="decision" value="allow">${text`Open server`}</button></div>
</form>
<p class="small soft">${text`You are asked once for each server until you log out.`}</p>
</div>`,
  });
}
