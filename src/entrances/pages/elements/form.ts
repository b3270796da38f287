import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { FormLayoutProps } from './layout-props.ts';

/** The hidden field that proves a form came from this hub's page. */
export function csrfField(layout: FormLayoutProps): Html {
  return html`<input type="hidden" name="_csrf" value="${layout.csrfToken}">`;
}

/** Hidden fields that a form carries along; a list makes one field of each value. */
export function hiddenFields(
  fields: Readonly<Record<string, string | readonly string[] | undefined>>,
): Html {
  return html`${Object.entries(fields).map(([name, value]) =>
    [value ?? []].flat().map((each) => html`<input type="hidden" name="${name}" value="${each}">`),
  )}`;
}

/** A form that is one button: every change is a POST, with or without scripts. */
export function actionForm(
  layout: FormLayoutProps,
  options: {
    readonly action: string;
    readonly label: Phrase;
    /** Says what the button does to what, where the label alone is ambiguous. */
    readonly accessibleLabel?: Phrase;
    /** Further classes of the button, such as `primary` or `small danger`. */
    readonly style?: string;
    readonly fields?: Readonly<Record<string, string | undefined>>;
  },
): Html {
  const { action, label, accessibleLabel, style = '', fields = {} } = options;
  return html`<form method="post" action="${action}">${csrfField(layout)}${hiddenFields(fields)}<button class="${`button ${style}`.trim()}"${accessibleLabel !== undefined && html` aria-label="${accessibleLabel}"`}>${label}</button></form>`;
}

export interface TextField {
  readonly name: string;
  readonly label: Phrase;
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'datetime-local' | undefined;
  readonly id?: string;
  readonly value?: string | undefined;
  readonly help?: HtmlValue;
  /** What is wrong with the value that was sent. */
  readonly problem?: Phrase | undefined;
  readonly autocomplete?: string;
  readonly isOptional?: boolean;
  readonly isFocused?: boolean;
  readonly placeholder?: Phrase;
  readonly maxLength?: number;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** For a code of digits: larger, spaced type and a numeric keyboard. */
  readonly isCode?: boolean;
  /** Names are typed as they are, without capital letters or corrections. */
  readonly isLiteral?: boolean;
  /** Id of the `datalist` with suggestions. */
  readonly list?: string;
  /** Kind of the names that `complete-names.js` offers in that list, or the name of the field that chooses it. */
  readonly completes?: string;
}

/** A labelled line of text with its help and its problem; a password can be revealed. */
export function textField(field: TextField): Html {
  const id = field.id ?? `field-${field.name}`;
  const isPassword = field.type === 'password';
  const input = html`<input class="input${field.isCode && ' code'}" id="${id}" name="${field.name}" type="${field.type ?? 'text'}"${field.value !== undefined && !isPassword && html` value="${field.value}"`}${field.autocomplete !== undefined && html` autocomplete="${field.autocomplete}"`}${field.placeholder !== undefined && html` placeholder="${field.placeholder}"`}${field.maxLength !== undefined && html` maxlength="${field.maxLength}"`}${field.min !== undefined && html` min="${field.min}"`}${field.max !== undefined && html` max="${field.max}"`}${field.type === 'number' && html` step="any"`}${field.isCode && html` inputmode="numeric"`}${(field.isLiteral || field.isCode) && html` autocapitalize="none" autocorrect="off" spellcheck="false"`}${field.list !== undefined && html` list="${field.list}"`}${field.completes !== undefined && html` data-completes="${field.completes}"`}${!field.isOptional && html` required`}${field.isFocused && html` autofocus`}${describedBy(id, field)}>`;
  return html`<div class="field">
<label for="${id}">${field.label}${optionalMark(field.isOptional)}</label>
${
  isPassword
    ? html`<div class="with-button">${input}<button class="button" type="button" hidden data-reveal="${id}" aria-pressed="false" aria-controls="${id}" data-show="${text`Show`}" data-hide="${text`Hide`}">${text`Show`}</button></div>`
    : input
}
${helpAndProblem(id, field)}</div>`;
}

/** A labelled field of several lines. */
export function textArea(
  field: Pick<TextField, 'name' | 'label' | 'help' | 'problem' | 'isOptional' | 'placeholder'> & {
    readonly value?: Phrase | undefined;
  },
): Html {
  const id = `field-${field.name}`;
  return html`<div class="field">
<label for="${id}">${field.label}${optionalMark(field.isOptional)}</label>
<textarea class="input" id="${id}" name="${field.name}" spellcheck="false"${field.placeholder !== undefined && html` placeholder="${field.placeholder}"`}${!field.isOptional && html` required`}${describedBy(id, field)}>
${field.value ?? ''}</textarea>
${helpAndProblem(id, field)}</div>`;
}

/**
 * A labelled field of names, one on each line. With `complete-names.js` a second field finds names of a kind, which may
 * be what another field chooses, and adds them.
 */
export function namesField(
  field: Parameters<typeof textArea>[0] & { readonly completes: string },
): Html {
  const id = `find-${field.name}`;
  return html`<div class="field" hidden><label for="${id}">${text`Find a name`}</label><input class="input" id="${id}" list="${id}-list" data-completes="${field.completes}" data-adds="${field.name}" autocomplete="off" autocapitalize="none" spellcheck="false" aria-describedby="${id}-help"><datalist id="${id}-list"></datalist><p class="help" id="${id}-help">${text`Choose one, or press Enter, to add it to the names.`}</p></div>
${textArea(field)}`;
}

export interface Choice {
  readonly value: string;
  readonly label: Phrase;
}

const day = 86_400;
/** For how many seconds a token or link can be made to work. */
export const lifetimes: readonly Choice[] = [
  { value: '3600', label: text`1 hour` },
  { value: String(day), label: text`1 day` },
  { value: String(7 * day), label: text`1 week` },
  { value: String(30 * day), label: text`30 days` },
  { value: String(365 * day), label: text`1 year` },
];

/** What is offered first. */
export const defaultLifetime = String(30 * day);

/** A labelled drop-down list. */
export function selectField(field: {
  readonly name: string;
  readonly label: Phrase;
  readonly choices: readonly Choice[];
  readonly value?: string | undefined;
  readonly help?: HtmlValue;
  readonly problem?: Phrase | undefined;
}): Html {
  const id = `field-${field.name}`;
  return html`<div class="field">
<label for="${id}">${field.label}</label>
<select class="input" id="${id}" name="${field.name}"${describedBy(id, field)}>${field.choices.map(
    ({ value, label }) =>
      html`<option value="${value}"${value === field.value && html` selected`}>${label}</option>`,
  )}</select>
${helpAndProblem(id, field)}</div>`;
}

/** A labelled check box. */
export function checkBox(field: {
  readonly name: string;
  readonly label: Phrase;
  readonly isChecked?: boolean;
  readonly help?: HtmlValue;
}): Html {
  const id = `field-${field.name}`;
  const helpId = field.help ? `${id}-help` : undefined;
  return html`<div class="check"><input type="checkbox" id="${id}" name="${field.name}" value="true"${field.isChecked && html` checked`}${helpId !== undefined && html` aria-describedby="${helpId}"`}><label for="${id}">${field.label}</label>${helpId !== undefined && html`<p class="help" id="${helpId}">${field.help}</p>`}</div>`;
}

function optionalMark(isOptional: boolean | undefined): HtmlValue {
  return isOptional && html` <span class="optional">${text`(optional)`}</span>`;
}

interface Described {
  readonly help?: HtmlValue;
  readonly problem?: Phrase | undefined;
}

function describedBy(id: string, { help, problem }: Described): HtmlValue {
  const ids = [problem !== undefined && `${id}-problem`, help && `${id}-help`].filter(Boolean);
  if (ids.length === 0) return '';
  return html`${problem !== undefined && html` aria-invalid="true"`} aria-describedby="${ids.join(' ')}"`;
}

function helpAndProblem(id: string, { help, problem }: Described): Html {
  return html`${problem !== undefined && html`<p class="problem" id="${id}-problem">${problem}</p>`}${help && html`<p class="help" id="${id}-help">${help}</p>`}`;
}
