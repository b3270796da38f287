/** A piece of markup whose dynamic parts have been escaped. Only this module can make one. */
export class Html {
  readonly #markup: string;

  constructor(key: symbol, markup: string) {
    if (key !== constructorKey) throw new TypeError('Html is made by the html tag.');
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

const constructorKey = Symbol('Html');

/** What may stand in a template: text is escaped, `false`, `null` and `undefined` show nothing. */
export type HtmlValue = Html | string | number | false | null | undefined | readonly HtmlValue[];

/**
 * Builds markup from a template and escapes every value that is not markup already.
 *
 * A value may stand as text or inside a quoted attribute. Where it is the whole or the beginning of
 * an address (`href`, `src`, `action`, `formaction`), it must be one that `safeHref` admits, and
 * shows as `#` otherwise.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? '';
  for (const [index, value] of values.entries()) {
    const before = strings[index] ?? '';
    if (before.endsWith('=')) {
      throw new TypeError(`An attribute needs quotes around its value: …${before.slice(-40)}`);
    }
    markup += addressStart.test(before) ? addressOf(value) : markupOf(value);
    markup += strings[index + 1] ?? '';
  }
  return new Html(constructorKey, markup);
}

/** Declares constant text to be markup. Never for anything that came from outside the source code. */
export function unsafeHtml(constant: string): Html {
  return new Html(constructorKey, constant);
}

/** Joins pieces of markup with a separator. */
export function joinHtml(pieces: readonly HtmlValue[], separator: HtmlValue): Html {
  return html`${pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece]))}`;
}

/** The text of a whole document or a part of one. */
export function renderHtml(markup: Html): string {
  return markup.toString();
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

function addressOf(value: HtmlValue): string {
  return escapeText(typeof value === 'string' ? (safeHref(value) ?? '#') : '#');
}

function markupOf(value: HtmlValue): string {
  if (value instanceof Html) return value.toString();
  if (value === false || value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(markupOf).join('');
  return escapeText(String(value));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeText(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '') : text;
}
