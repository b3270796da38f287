/**
 * Texts for people: values that are written in the language of their reader when they are rendered.
 *
 * A sentence is a `text` template, whose values are numbered in its key: ``text`Hello, ${name}` `` is `Hello, {0}` in
 * the catalogues of `languages/`. What depends on a number or a word is an ICU `message` with named values. Numbers
 * among the values are written as the language does (`1,234`); what is no quantity, such as a port, is given as a
 * string. Markup in a sentence, such as a link, is a value as well. What depends on the locale alone (times, sizes)
 * is `written`. `docs/how-to/translate.md` says how to translate.
 */
import { keyOf } from './key.ts';
import { english, type Language } from './language.ts';

/** What stands within a text and is more than characters; pages have their `Html` for it. */
export abstract class Markup {
  /** Its characters alone, for where there can be no markup. */
  abstract textIn(language: Language): string;
}

export type TextValue = string | number | Text | Markup;

/** What is shown to people: a text in their language, or a string that is the same in all, such as a name. */
export type Phrase = string | Text;

/** A text that is yet to be written in a language. Only this module can make one. */
export class Text {
  readonly #partsIn: (language: Language) => readonly unknown[];

  constructor(key: symbol, partsIn: (language: Language) => readonly unknown[]) {
    if (key !== constructorKey) throw new TypeError('Text is made by the text tag.');
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
  const known = key;
  return new Text(constructorKey, (language) => language.fill(known, values));
}

/**
 * A sentence that is kept or sent in English, and read by people on a page, which shows it with `translated`: the reason
 * of a failure, a step of a start.
 */
export function inEnglish(strings: TemplateStringsArray, ...values: readonly TextValue[]): string {
  return String(text(strings, ...values));
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
  const key = keyOf(source, options.context);
  return new Text(constructorKey, (language) => language.fill(key, values));
}

/** What is written by the rules of a language and not from its catalogue, such as a time. */
export function written(write: (language: Language) => Phrase): Text {
  return new Text(constructorKey, (language) => language.written([write(language)]));
}

/**
 * What was written in English before, because it was stored, came from another process or from a plugin: the text
 * that reads so, and the sentences within it. Shown as it is where there is none.
 */
export function translated(said: Phrase): Text {
  if (said instanceof Text) return said;
  return new Text(constructorKey, (language) => {
    const sentences = sentencesOf(said, language);
    if (sentences !== undefined) return sentences;
    const found = language.recognise(said);
    if (found === undefined) return piecesOf(said, language);
    const values = Object.entries(found.values).map(([name, value]) => [
      name,
      typeof value === 'number' ? value : translated(value),
    ]);
    return language.fill(found.key, Object.fromEntries(values));
  });
}

/** In how many places a string may be cut in two. */
const mostCuts = 10;

/** Two sentences that are both texts, one after the other. */
function sentencesOf(said: string, language: Language): readonly unknown[] | undefined {
  let at = said.indexOf('. ');
  for (let cut = 0; at !== -1 && cut < mostCuts; cut += 1) {
    const parts = [said.slice(0, at + 1), said.slice(at + 2)] as const;
    if (parts.every((part) => language.recognise(part) !== undefined)) {
      return [translated(parts[0]), ' ', translated(parts[1])];
    }
    at = said.indexOf('. ', at + 1);
  }
  return undefined;
}

/** What no text says as a whole: one of them with its reason behind it, or lengths of time. */
function piecesOf(said: string, language: Language): readonly unknown[] {
  if (/^\d+ \p{L}+(?: \d+ \p{L}+)+$/u.test(said)) {
    const lengths = said.split(/ (?=\d)/).map(translated);
    return lengths.flatMap((each, index) => (index === 0 ? [each] : [' ', each]));
  }
  const [joint = ''] = /: | \(/.exec(said) ?? [];
  const at = said.indexOf(joint);
  if (joint === '' || language.recognise(said.slice(0, at)) === undefined) return [said];
  const isInBrackets = joint === ' (' && said.endsWith(')');
  const rest = said.slice(at + joint.length, isInBrackets ? -1 : undefined);
  return [translated(said.slice(0, at)), joint, translated(rest), isInBrackets ? ')' : ''];
}

/** Texts one after the other, such as sentences. */
export function joined(values: readonly TextValue[], separator = ' '): Text {
  const parts = values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
  return new Text(constructorKey, () => parts);
}

/** A list in words: `a, b and c`, or `a, b or c`. */
export function listOf(
  values: readonly TextValue[],
  type: 'conjunction' | 'disjunction' = 'conjunction',
): Text {
  return new Text(constructorKey, (language) => {
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

/** The characters of a phrase in a language. */
export function phraseIn(phrase: Phrase, language: Language): string {
  return typeof phrase === 'string' ? phrase : phrase.in(language);
}
