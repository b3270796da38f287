import { sourceOf } from './key.ts';
import { compilePattern, type Pattern, type Values } from './pattern.ts';

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
