import { IntlMessageFormat } from 'intl-messageformat';

/** What a text is called in the catalogues: the English source, after its context where it has one. */
export function keyOf(source: string, context?: string): string {
  return context === undefined ? source : `${context}::${source}`;
}

/** The English source of a key. */
export function sourceOf(key: string): string {
  return key.replace(/^[a-z][a-z ]*::/, '');
}

/** A message ready to be filled in: its literal parts and the values between them, in order. */
export type Pattern = (values: Values) => readonly unknown[];

/** By name, or by number in a list. */
export type Values = Readonly<Record<string, unknown>> | readonly unknown[];

/** Compiles an ICU message for the plural rules of a locale. Throws an Error that says what is wrong with it. */
export function compilePattern(source: string, locale: string): Pattern {
  const segments = plainSegments(source);
  if (segments !== undefined) {
    if (segments.length === 1) return () => segments;
    return (values) =>
      segments.map((segment, index) => (index % 2 === 0 ? segment : filled(values, segment)));
  }
  const format = parse(source, locale);
  return (values) => format.formatToParts(wrapNumbers(values)).map(({ value }) => unwrap(value));
}

/** The names of the values that an ICU message shows or decides by. Throws an Error that says what is wrong with it. */
export function placeholdersOf(source: string): ReadonlySet<string> {
  const segments = plainSegments(source);
  if (segments !== undefined) return new Set(segments.filter((_, index) => index % 2 === 1));
  const names = new Set<string>();
  collect(parse(source, 'en').getAst(), names);
  return names;
}

const placeholder = /\{(\w+)\}/;

/** Literal text and names by turns, where a message has nothing but plain placeholders: most need no parser. */
function plainSegments(source: string): readonly string[] | undefined {
  if (/''|'[{}]/.test(source)) return undefined;
  const segments = source.split(placeholder);
  return segments.some((segment, index) => index % 2 === 0 && /[{}]/.test(segment))
    ? undefined
    : segments;
}

function parse(source: string, locale: string): IntlMessageFormat {
  try {
    // Markup is a value, never a part of a message.
    return new IntlMessageFormat(source, locale, undefined, { ignoreTag: true });
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new Error(`is no ICU message (${first})`, { cause: error });
  }
}

function filled(values: Values, name: string): unknown {
  if (!Object.hasOwn(values, name)) throw new TypeError(`a text lacks its value ${name}`);
  return (values as Readonly<Record<string, unknown>>)[name];
}

/** A number that the formatter compares as one, but gives back instead of writing it without regard to the locale. */
class WrappedNumber {
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }

  valueOf(): number {
    return this.number;
  }

  toString(): string {
    return String(this.number);
  }
}

function wrapNumbers(values: Values): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'number' ? new WrappedNumber(value) : value,
    ]),
  );
}

const unwrap = (value: unknown): unknown => (value instanceof WrappedNumber ? value.number : value);

interface Element {
  readonly value?: unknown;
  readonly type: number;
  readonly options?: Readonly<Record<string, { readonly value: readonly Element[] }>>;
}

/** Literal text and `#` have no name; see `TYPE` of the parser. */
const nameless: readonly number[] = [0, 7];

function collect(elements: readonly unknown[], names: Set<string>): void {
  for (const { type, value, options } of elements as readonly Element[]) {
    if (!nameless.includes(type) && typeof value === 'string') names.add(value);
    for (const option of Object.values(options ?? {})) collect(option.value, names);
  }
}

/** ISO 15924 codes of the scripts in use that run from right to left. */
const rightToLeftScripts: ReadonlySet<string> = new Set([
  'Adlm',
  'Arab',
  'Hebr',
  'Mand',
  'Nkoo',
  'Rohg',
  'Samr',
  'Syrc',
  'Thaa',
]);

/**
 * A language in which texts are shown: its translations, and how its speakers write numbers and times. What it has no
 * translation for is taken from its fallback, at the end from the English source.
 */
export class Language {
  /** BCP 47, such as `de` or `pt-BR`. */
  readonly tag: string;
  /** Of the language that the hub prefers where the reader's is missing. */
  readonly defaultTag: string;
  readonly #translations: ReadonlyMap<string, string>;
  readonly #fallback: Language | undefined;
  readonly #patterns = new Map<string, Pattern>();
  readonly #formats = new Map<string, unknown>();

  constructor(
    tag: string,
    translations: ReadonlyMap<string, string> = new Map(),
    fallback?: Language,
    defaultTag = 'en',
  ) {
    this.tag = tag;
    this.defaultTag = defaultTag;
    this.#translations = translations;
    this.#fallback = fallback;
  }

  /** What its speakers call it: `Deutsch`. */
  get name(): string {
    // Every page names all languages.
    return this.format('name of the language', (tag) => {
      const name = new Intl.DisplayNames([tag], { type: 'language' }).of(tag) ?? tag;
      return name.slice(0, 1).toLocaleUpperCase(tag) + name.slice(1);
    });
  }

  /** The direction of its script: `rtl` for Arabic or Hebrew, unless it is written in another one (`ks-Deva`). */
  get direction(): 'ltr' | 'rtl' {
    const { script } = new Intl.Locale(this.tag).maximize();
    return script !== undefined && rightToLeftScripts.has(script) ? 'rtl' : 'ltr';
  }

  /** The parts of the text of a key with its values between them. */
  fill(key: string, values: Values): readonly unknown[] {
    return this.patternOf(key)(values);
  }

  /** The parts of what is written by the rules of the language, and not from its translations. */
  written(parts: readonly unknown[]): readonly unknown[] {
    return parts;
  }

  /** The translation of a key, or undefined where the language has none of its own. */
  translationOf(key: string): string | undefined {
    return this.#translations.get(key);
  }

  /** A formatter of `Intl`, or what one gives, made once for each name. */
  format<Format>(name: string, create: (tag: string) => Format): Format {
    const known = this.#formats.get(name) as Format | undefined;
    if (known !== undefined) return known;
    const created = create(this.tag);
    this.#formats.set(name, created);
    return created;
  }

  private patternOf(key: string): Pattern {
    const known = this.#patterns.get(key);
    if (known !== undefined) return known;
    const translation = this.#translations.get(key);
    const pattern =
      translation !== undefined
        ? compilePattern(translation, this.tag)
        : (this.#fallback?.patternOf(key) ?? compilePattern(sourceOf(key), 'en'));
    this.#patterns.set(key, pattern);
    return pattern;
  }
}

/** The texts as they stand in the source: of the API, the log and the command line. */
export const english = new Language('en');
