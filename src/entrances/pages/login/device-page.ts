import { type Phrase, text } from '../../../platform/texts/text.ts';
import { textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

/** The page on which users type the code that their device shows (RFC 8628 §3.3). */
export function devicePage(view: {
  readonly layout: FormLayoutProps;
  readonly userCode?: string | undefined;
  /** Whether nothing waits for it. */
  readonly isUnknown?: boolean;
  readonly problem?: Phrase | undefined;
}): Html {
  const { layout, userCode, isUnknown } = view;
  const unknown = isUnknown ? text`There is no such code, or it has expired.` : undefined;
  return focusLayout(layout, {
    title: text`Connect a device`,
    body: html`<div class="panel">
<header class="titles"><h1>${text`Connect a device`}</h1><p class="lead">${text`Type the code that your device or command line shows.`}</p></header>
<form class="fields" method="get" action="${layout.urls.device}">
${textField({ name: 'user_code', label: text`Code`, value: userCode, problem: view.problem ?? unknown, maxLength: 20, autocomplete: 'off', isLiteral: true, isFocused: true })}
<button class="button primary">${text`Continue`}</button>
</form>
</div>`,
  });
}

/** Says what has become of the request of a device. */
export function deviceDonePage(
  layout: FormLayoutProps,
  { isAllowed }: { readonly isAllowed: boolean },
): Html {
  const title = isAllowed ? text`Your device is connected` : text`Your device was denied`;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${isAllowed ? text`It goes on by itself; you can close this page.` : text`It gets nothing; you can close this page.`}</p></header>
<a class="button primary" href="${layout.urls.home}">${text`Go to your home page`}</a>
<p class="small soft">${text`What may act for you stands under ${html`<a href="${layout.urls.tokens}">${text`Tokens`}</a>`}.`}</p>
</div>`,
  });
}
