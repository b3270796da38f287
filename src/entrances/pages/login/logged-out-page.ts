import { type Phrase, text } from '../../../platform/texts/text.ts';
import { focusLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export interface LoggedOutView {
  readonly layout: LayoutProps;
  /** Name of the external provider where the person may still be logged in. */
  readonly provider?: Phrase | undefined;
}

/** The page after a logout. */
export function loggedOutPage({ layout, provider }: LoggedOutView): Html {
  return focusLayout(layout, {
    title: text`Logged out`,
    body: html`<div class="panel">
<header class="titles"><h1>${text`You are logged out`}</h1><p class="lead">${text`Everything you had open here is closed to this browser. A server of yours that was running keeps running.`}</p></header>
${provider !== undefined && html`<p class="soft">${text`You may still be logged in at ${provider}. On a shared computer, log out there too.`}</p>`}
<a class="button primary wide" href="${layout.urls.login}">${text`Log in again`}</a>
</div>`,
  });
}
