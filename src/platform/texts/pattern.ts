import { IntlMessageFormat } from 'intl-messageformat';

/** A message ready to be filled in: its literal parts and the values between them, in order. */
export type Pattern = (values: Values) => readonly unknown[];

/** By name, or by number in a list. */
export type Values = Readonly<Record<string, unknown>> | readonly unknown[];

/** Compiles an ICU message for the plural rules of a locale. Throws an Error that says what is wrong with it. */
export function compilePattern(source: string, locale: string): Pattern {
  const pieces = plainPieces(source);
  if (pieces !== undefined) {
    if (pieces.length === 1) return () => pieces;
    return (values) =>
      pieces.map((piece, index) => (index % 2 === 0 ? piece : filled(values, piece)));
  }
  const format = parse(source, locale);
  return (values) => format.formatToParts(wrapNumbers(values)).map(({ value }) => unwrap(value));
}

/** The names of the values that an ICU message shows or decides by. Throws an Error that says what is wrong with it. */
export function placeholdersOf(source: string): ReadonlySet<string> {
  const pieces = plainPieces(source);
  if (pieces !== undefined) return new Set(pieces.filter((_, index) => index % 2 === 1));
  const names = new Set<string>();
  collect(parse(source, 'en').getAst(), names);
  return names;
}

const placeholder = /\{(\w+)\}/;

/** Literal text and names by turns, where a message has nothing but plain placeholders: most need no parser. */
function plainPieces(source: string): readonly string[] | undefined {
  if (/''|'[{}]/.test(source)) return undefined;
  const pieces = source.split(placeholder);
  return pieces.some((piece, index) => index % 2 === 0 && /[{}]/.test(piece)) ? undefined : pieces;
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
