import { type Phrase, text } from '../../../platform/texts/text.ts';
import { focusLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export interface LoginFailedView {
  readonly layout: LayoutProps;
  readonly title: Phrase;
  /** What happened, in a sentence. */
  readonly message: Phrase;
  /** What to do about it. */
  readonly hint: Phrase;
  readonly action: { readonly label: Phrase; readonly url: string };
  /** The login page, where there is another login method. */
  readonly otherWays?: string | undefined;
}

/** The page of a login at an external provider that came to nothing. */
export function loginFailedPage(view: LoginFailedView): Html {
  const { layout, title, message, hint, action, otherWays } = view;
  const { requestId } = layout;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${message}</p></header>
<p>${hint}</p>
${requestId !== undefined && html`<p class="small soft">${text`Request ID for support: ${html`<code>${requestId}</code>`}.`}</p>`}
<a class="button primary wide" href="${action.url}">${action.label}</a>
${otherWays !== undefined && html`<a class="button wide" href="${otherWays}">${text`Log in another way`}</a>`}
</div>`,
  });
}
