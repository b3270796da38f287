import { english, type Language } from '../../platform/texts/language.ts';
import { Markup, Text } from '../../platform/texts/text.ts';

/** A piece of markup whose dynamic parts are escaped when it is rendered. Only this module can make one. */
export class Html extends Markup {
  readonly #template: Template;
  readonly #values: readonly HtmlValue[];

  constructor(key: symbol, template: Template, values: readonly HtmlValue[] = []) {
    super();
    if (key !== constructorKey) throw new TypeError('Html is made by the html tag.');
    this.#template = template;
    this.#values = values;
  }

  markupIn(language: Language): string {
    const { strings, holes } = this.#template;
    const values = this.#values;
    let markup = strings[0] ?? '';
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index];
      markup += holes[index] === 'address' ? addressOf(value, language) : markupOf(value, language);
      markup += strings[index + 1] ?? '';
    }
    return markup;
  }

  override textIn(language: Language): string {
    return this.markupIn(language)
      .replace(/<[^>]*>/g, '')
      .replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => signs[entity] ?? '');
  }

  /** In English. */
  override toString(): string {
    return this.markupIn(english);
  }
}

interface Template {
  readonly strings: readonly string[];
  readonly holes: readonly Hole[];
}

/** What a value of a template becomes. */
type Hole = 'text' | 'address';

const constructorKey = Symbol('Html');

/** What may stand in a template: text is escaped, `false`, `null` and `undefined` show nothing. */
export type HtmlValue =
  | Html
  | Text
  | string
  | number
  | false
  | null
  | undefined
  | readonly HtmlValue[];

/**
 * Builds markup from a template and escapes every value that is not markup already. Texts are written in the language
 * in which the markup is rendered.
 *
 * A value may stand as text or inside a quoted attribute. Where it is the whole or the beginning of
 * an address (`href`, `src`, `action`, `formaction`), it must be one that `safeHref` admits, and
 * shows as `#` otherwise.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let template = templates.get(strings);
  if (template === undefined) {
    template = { strings, holes: strings.slice(0, -1).map(holeAfter) };
    templates.set(strings, template);
  }
  return new Html(constructorKey, template, values);
}

const templates = new WeakMap<TemplateStringsArray, Template>();

function holeAfter(before: string): Hole {
  if (before.endsWith('=')) {
    throw new TypeError(`An attribute needs quotes around its value: …${before.slice(-40)}`);
  }
  return addressStart.test(before) ? 'address' : 'text';
}

/** Declares constant text to be markup. Never for anything that came from outside the source code. */
export function unsafeHtml(constant: string): Html {
  return new Html(constructorKey, { strings: [constant], holes: [] });
}

/** Joins pieces of markup with a separator. */
export function joinHtml(pieces: readonly HtmlValue[], separator: HtmlValue): Html {
  return html`${pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece]))}`;
}

/** The text of a whole document or a part of one, in the language of its reader. */
export function renderHtml(markup: Html, language = english): string {
  return markup.markupIn(language);
}

/**
 * The address when a link may lead there, or undefined: a path of this site, or http, https and
 * mailto. Browsers drop control characters inside a scheme, so a parser decides, not a prefix.
 */
export function safeHref(address: string): string | undefined {
  const url = URL.parse(address, 'https://hub.invalid/');
  return url !== null && linkableSchemes.includes(url.protocol) ? address : undefined;
}

const linkableSchemes: readonly string[] = ['http:', 'https:', 'mailto:'];

const addressStart = /\s(?:href|src|action|formaction)="$/;

function addressOf(value: HtmlValue, language: Language): string {
  const address = value instanceof Text ? value.in(language) : value;
  return escapeText(typeof address === 'string' ? (safeHref(address) ?? '#') : '#');
}

function markupOf(value: HtmlValue, language: Language): string {
  if (typeof value === 'string') return escapeText(value);
  if (value instanceof Html) return value.markupIn(language);
  if (value === false || value === null || value === undefined) return '';
  if (Array.isArray(value)) {
    let markup = '';
    for (const each of value as readonly HtmlValue[]) markup += markupOf(each, language);
    return markup;
  }
  if (value instanceof Text) return value.write(language, asMarkup);
  return escapeText(String(value));
}

const asMarkup = {
  text: escapeText,
  markup: (markup: Markup, language: Language) =>
    markup instanceof Html ? markup.markupIn(language) : escapeText(markup.textIn(language)),
};

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const signs = Object.fromEntries(Object.entries(entities).map(([sign, entity]) => [entity, sign]));

/** Signs of markup, and control characters, which have no place in a document (HTML, "control-character-in-input-stream"). */
const special = /[&<>"'\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
const everySpecial = new RegExp(special, 'g');

function escapeText(text: string): string {
  return special.test(text)
    ? text.replace(everySpecial, (sign) => entities[sign] ?? '\ufffd')
    : text;
}
