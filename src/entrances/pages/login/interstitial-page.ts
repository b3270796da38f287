import { type Phrase, text } from '../../../platform/texts/text.ts';
import { focusLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export interface InterstitialView {
  readonly layout: LayoutProps;
  readonly title: Phrase;
  /** What the browser goes on to: the name of a login provider, or a host. */
  readonly provider: Phrase;
  /** Why it goes there. */
  readonly message: Phrase;
  readonly url: string;
}

/**
 * The page between a form of the hub and an address elsewhere: browsers let a form end at no other
 * site, so its answer is this page, which goes on by itself.
 */
export function interstitialPage({
  layout,
  title,
  provider,
  message,
  url,
}: InterstitialView): Html {
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${message}</p></header>
<a class="button primary wide" href="${url}">${text`Continue to ${provider}`}</a>
</div>`,
  });
}
