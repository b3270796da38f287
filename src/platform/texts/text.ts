/**
 * Texts for people: values that are written in the language of their reader when they are rendered.
 *
 * A sentence is a `text` template, whose values are numbered in its key: ``text`Hello, ${name}` `` is `Hello, {0}` in
 * the catalogues of `languages/`. What depends on a number or a word is an ICU `message` with named values. Numbers
 * among the values are written as the language does (`1,234`); what is no quantity, such as a port, is given as a
 * string. Markup in a sentence, such as a link, is a value as well. What depends on the locale alone (times, sizes)
 * is `written`. `docs/how-to/translate.md` says how to translate.
 */
import { english, keyOf, type Language, sourceOf } from './language.ts';

/** What stands within a text and is more than characters; pages have their `Html` for it. */
export abstract class Markup {
  /** Its characters alone, for where there can be no markup. */
  abstract textIn(language: Language): string;
}

export type TextValue = string | number | Text | Markup;

/** What is shown to people: a text in their language, or a string that is the same in all, such as a name. */
export type Phrase = string | Text;

/**
 * A phrase as JSON, stored in the database or sent to another process: the key of a text in the catalogues with its
 * values, by number or by name; a string is shown as it is.
 */
export type SavedPhrase =
  | string
  | {
      readonly key: string;
      readonly values: readonly SavedValue[] | Readonly<Record<string, SavedValue>>;
    };

type SavedValue = SavedPhrase | number;

/** The key of a text and its values. */
interface Source {
  readonly key: string;
  readonly values: readonly TextValue[] | Readonly<Record<string, TextValue>>;
}

/** A text that is yet to be written in a language. Only this module can make one. */
export class Text {
  readonly #partsIn: (language: Language) => readonly unknown[];
  readonly #source: Source | undefined;

  constructor(
    key: symbol,
    source: Source | undefined,
    partsIn: (language: Language) => readonly unknown[],
  ) {
    if (key !== constructorKey) throw new TypeError('Text is made by the text tag.');
    this.#source = source;
    this.#partsIn = partsIn;
  }

  /** Joins its characters and the markup between them, each as it is written. */
  write(
    language: Language,
    writers: {
      readonly text: (characters: string) => string;
      readonly markup: (markup: Markup, language: Language) => string;
    },
  ): string {
    let joined = '';
    for (const part of this.#partsIn(language)) {
      if (typeof part === 'string') joined += writers.text(part);
      else if (part instanceof Text) joined += part.write(language, writers);
      else if (part instanceof Markup) joined += writers.markup(part, language);
      else {
        const characters = typeof part === 'number' ? writeNumber(part, language) : String(part);
        joined += writers.text(characters);
      }
    }
    return joined;
  }

  /** Its characters alone. */
  in(language: Language): string {
    return this.write(language, asCharacters);
  }

  /** In English, as logs and the API have it. */
  toString(): string {
    return this.in(english);
  }

  toJSON(): string {
    return this.toString();
  }

  /** As it is stored; in the language where it has no key, such as a time. */
  toSaved(language: Language): SavedPhrase {
    if (this.#source === undefined) return this.in(language);
    const { key, values } = this.#source;
    const save = (value: TextValue) => savedValue(value, language);
    if (Array.isArray(values)) return { key, values: values.map(save) };
    const named = Object.entries(values).map(([name, value]) => [name, save(value)]);
    return { key, values: Object.fromEntries(named) };
  }
}

const constructorKey = Symbol('Text');

const asCharacters = {
  text: (characters: string) => characters,
  markup: (markup: Markup, language: Language) => markup.textIn(language),
};

const keys = new WeakMap<TemplateStringsArray, string>();

/** A sentence with values: ``text`Delete ${name}?` ``. */
export function text(strings: TemplateStringsArray, ...values: readonly TextValue[]): Text {
  let key = keys.get(strings);
  if (key === undefined) {
    key = strings.reduce((joined, part, index) => `${joined}{${index - 1}}${part}`);
    keys.set(strings, key);
  }
  return keyed(key, values);
}

/**
 * A text that is written as an ICU message with named values: `message('{count, plural, one {# token} other {#
 * tokens}}', { count })`. The context tells equal English words of different meanings apart.
 */
export function message(
  source: string,
  values: Readonly<Record<string, TextValue>> = {},
  options: { readonly context?: string } = {},
): Text {
  return keyed(keyOf(source, options.context), values);
}

/** What is written by the rules of a language and not from its catalogue, such as a time. */
export function written(write: (language: Language) => Phrase): Text {
  return new Text(constructorKey, undefined, (language) => language.written([write(language)]));
}

function keyed(key: string, values: Source['values']): Text {
  return new Text(constructorKey, { key, values }, (language) => language.fill(key, values));
}

const savedValue = (value: TextValue, language: Language): SavedValue =>
  typeof value === 'number' || typeof value === 'string'
    ? value
    : value instanceof Text
      ? value.toSaved(language)
      : value.textIn(language);

/**
 * A phrase as it is stored or sent to another process; `readPhrase` reads it. What has no key, such as a time, is
 * written in the language.
 */
export function savePhrase(phrase: Phrase, language = english): SavedPhrase {
  return typeof phrase === 'string' ? phrase : phrase.toSaved(language);
}

/** What `savePhrase` wrote, perhaps in another version of the hub. */
export function readPhrase(saved: unknown): Phrase {
  if (typeof saved !== 'object' || saved === null) return String(saved);
  const { key, values } = saved as { readonly key?: unknown; readonly values?: unknown };
  if (typeof key !== 'string' || typeof values !== 'object' || values === null) return '';
  const read: Source['values'] = Array.isArray(values)
    ? values.map(readValue)
    : Object.fromEntries(Object.entries(values).map(([name, value]) => [name, readValue(value)]));
  return new Text(constructorKey, { key, values: read }, (language) => {
    try {
      return language.fill(key, read);
    } catch {
      // Another version fills it in otherwise.
      return [sourceOf(key)];
    }
  });
}

const readValue = (value: unknown): TextValue =>
  typeof value === 'number' ? value : readPhrase(value);

/** Texts one after the other, such as sentences. */
export function joined(values: readonly TextValue[], separator = ' '): Text {
  const parts = values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
  const key = values.map((_, index) => `{${index}}`).join(separator);
  return new Text(constructorKey, { key, values }, () => parts);
}

/** A list in words: `a, b and c`, or `a, b or c`. */
export function listOf(
  values: readonly TextValue[],
  type: 'conjunction' | 'disjunction' = 'conjunction',
): Text {
  return new Text(constructorKey, undefined, (language) => {
    const format = language.format(`list ${type}`, (tag) => new Intl.ListFormat(tag, { type }));
    return format
      .formatToParts(values.map((_, index) => String(index)))
      .flatMap((part): readonly unknown[] =>
        part.type === 'element' ? [values[Number(part.value)]] : language.written([part.value]),
      );
  });
}

/** A number as a language writes it: `1,234`. */
export function writeNumber(
  value: number,
  language: Language,
  options?: Intl.NumberFormatOptions,
): string {
  const name = options === undefined ? 'number' : `number ${JSON.stringify(options)}`;
  return language.format(name, (tag) => new Intl.NumberFormat(tag, options)).format(value);
}

/** Whether two phrases read alike. */
export function isSamePhrase(one: Phrase | undefined, other: Phrase | undefined): boolean {
  return String(one) === String(other);
}

/** The characters of a phrase in a language. */
export function phraseIn(phrase: Phrase, language: Language): string {
  return typeof phrase === 'string' ? phrase : phrase.in(language);
}

/** A moment to the minute, in UTC: `2026-01-31 18:00 UTC`, or as the language has it. */
export function exactTime(moment: Date): Text {
  return written((language) => {
    // Of the two orders of English, neither is clear to all.
    if (language.tag === 'en') return `${moment.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
    const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const;
    const format = language.format('moment', (tag) => new Intl.DateTimeFormat(tag, options));
    return `${format.format(moment)} UTC`;
  });
}

/** A text that the operator wrote: one for all readers, or one for each language, by BCP 47 tag. */
export type LocalizedText = string | Readonly<Record<string, string>>;

/** A text of the operator among free data; what is none, or is empty, is left out. */
export function readLocalizedText(value: unknown): LocalizedText | undefined {
  if (isText(value)) return value.trim();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const texts = Object.entries(value).flatMap(([tag, each]) =>
    isText(each) ? [[tag, each.trim()]] : [],
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '';

/** As it is shown: in the language of the reader, else in the default one of the hub, else in the first there is. */
export function localizedPhrase(own: LocalizedText | Text): Phrase {
  if (typeof own === 'string' || own instanceof Text) return own;
  return written(
    (language) => bestFor(own, language) ?? own[language.defaultTag] ?? Object.values(own)[0] ?? '',
  );
}

/** As it is where no reader is known, in this language if it is there. */
export function localizedTextIn(own: LocalizedText, tag: string): string {
  if (typeof own === 'string') return own;
  return bestFor(own, { tag }) ?? Object.values(own)[0] ?? '';
}

/** What there is for readers of a language: where `pt-BR` has none of its own, it has that of `pt`. */
export function bestFor<Each>(
  byTag: Readonly<Record<string, Each>>,
  { tag }: Pick<Language, 'tag'>,
): Each | undefined {
  const subtags = tag.split('-');
  for (let length = subtags.length; length > 0; length -= 1) {
    const wanted = subtags.slice(0, length).join('-');
    if (Object.hasOwn(byTag, wanted)) return byTag[wanted];
  }
  return undefined;
}
