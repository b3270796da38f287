import { text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, html } from '../html.ts';
import { shareLabels } from './share-labels.ts';

export interface AcceptShareView {
  readonly layout: FormLayoutProps;
  /** Whose server it is. */
  readonly ownerName: string;
  /** Empty for the default one. */
  readonly serverName: string;
  readonly scopeNames: readonly string[];
  readonly isRunning: boolean;
  readonly code: string;
  /** The page wanted afterwards. */
  readonly next?: string | undefined;
}

/** Asks whether to accept what a link shares. */
export function acceptSharePage(view: AcceptShareView): Html {
  const { layout, ownerName, serverName, scopeNames, code, next } = view;
  return focusLayout(layout, {
    title: text`${ownerName} shares a server with you`,
    body: html`<div class="panel">
<header class="titles"><h1>${text`${ownerName} shares a server with you`}</h1>${serverName !== '' && html`<p class="lead">${text`The server is called ${serverName}.`}</p>`}</header>
<p>${text`What you may do there: ${shareLabels(scopeNames, { inSentence: true })}.`}${!view.isRunning && html` ${text`It is not currently running.`}`}</p>
${notice(
  'warn',
  html`<div class="stack"><p>${text`This server belongs to ${html`<b>${ownerName}</b>`}, who decides what runs on it.`}</p><p>${text`${ownerName} controls everything on these pages. Accept only if you trust them, and never enter a password there.`}</p></div>`,
)}
<form class="fields" method="post" action="${layout.urls.acceptShareForm}">
${csrfField(layout)}${hiddenFields({ code, next })}
<div class="decision"><a class="button" href="${layout.urls.home}">${text`Cancel`}</a><button class="button primary">${text`Accept`}</button></div>
</form>
</div>`,
  });
}
