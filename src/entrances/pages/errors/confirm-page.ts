import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface ConfirmView {
  readonly layout: FormLayoutProps;
  /** A question: `Delete alice?`. */
  readonly title: Phrase;
  /** What will happen and what cannot be undone. */
  readonly consequences: readonly HtmlValue[];
  /** Names the action, never just “OK”. */
  readonly label: Phrase;
  /** Whether it is asked for another reason than that something is lost. */
  readonly losesNothing?: true | undefined;
  readonly action: string;
  readonly cancelUrl: string;
  readonly fields?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined;
  /** Further fields to fill in. */
  readonly questions?: HtmlValue;
  /** For what cannot be undone: a name to type first, sent as `confirmation`. */
  readonly typeToConfirm?: string | undefined;
  readonly problem?: Phrase | undefined;
  /** What someone else has made of it since it was asked first. */
  readonly changed?: ChangedMeanwhile | undefined;
}

/** The page that asks before something is destroyed, or done to many. */
export function confirmPage(view: ConfirmView): Html {
  const {
    layout,
    title,
    consequences,
    label,
    action,
    cancelUrl,
    fields = {},
    typeToConfirm,
  } = view;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<h1>${title}</h1>
${view.changed !== undefined && changedMeanwhile(view.changed, { isDeletion: true })}
${consequences.length > 0 && notice(view.losesNothing ? 'info' : 'warn', html`<div class="stack">${consequences.map((line) => html`<p>${line}</p>`)}</div>`)}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields(fields)}
${view.questions}
${
  typeToConfirm !== undefined &&
  textField({
    name: 'confirmation',
    label: text`Type ${typeToConfirm} to confirm`,
    autocomplete: 'off',
    isLiteral: true,
    problem: view.problem,
  })
}
<div class="decision"><a class="button" href="${cancelUrl}">${text`Cancel`}</a><button class="button primary${!view.losesNothing && ' danger'}">${label}</button></div>
</form>
</div>`,
  });
}
