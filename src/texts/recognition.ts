import { IntlMessageFormat } from 'intl-messageformat';
import { isOfPlugin, sourceOf } from './key.ts';

/** Finds texts by what they read in English. */
export interface Recognition {
  /** The key of the text that reads so, and its values by name; undefined where none does. */
  find(english: string): RecognisedText | undefined;
}

export interface RecognisedText {
  readonly key: string;
  readonly values: Readonly<Record<string, string | number>>;
}

/** A value within a text. */
interface Hole {
  readonly name: string;
  readonly isNumber: boolean;
}

/** Text with holes between: one more text than there are holes. */
interface Template {
  readonly key: string;
  readonly literals: readonly string[];
  readonly holes: readonly Hole[];
  /** What is known by the form of the text, such as the 1 of “1 layer”. */
  readonly fixed: Readonly<Record<string, string | number>>;
}

/** A name such as “Users” may be anyone's, and “{0} of {1}” may stand in any sentence. */
const fewestWords = 3;

/** More forms than this has no text that anyone keeps. */
const mostForms = 32;

/** What finds the texts of these keys; of two that fit, the one with more words of its own. */
export function createRecognition(keys: Iterable<string>): Recognition {
  const templates = [...keys]
    .flatMap(templatesOf)
    .sort((one, other) => lengthOf(other) - lengthOf(one));
  return {
    find(english) {
      for (const template of templates) {
        const values = valuesIn(template, english);
        if (values !== undefined) return { key: template.key, values };
      }
      return undefined;
    },
  };
}

/** Whether the text of a key can be told from others by what it reads. */
export function isRecognisable(key: string): boolean {
  return templatesOf(key).length > 0;
}

function lengthOf({ literals }: Template): number {
  return literals.reduce((sum, { length }) => sum + length, 0);
}

function templatesOf(key: string): readonly Template[] {
  // A word in a context may be any word.
  if (key !== sourceOf(key) && !isOfPlugin(key)) return [];
  const source = sourceOf(key);
  const forms = source.includes('{') ? formsOf(source) : [[source]];
  return forms.flatMap((form): readonly Template[] => {
    const literals = [''];
    const holes: Hole[] = [];
    let fixed: Template['fixed'] = {};
    for (const piece of form) {
      if (typeof piece === 'string') literals.push(`${literals.pop()}${piece}`);
      else if (isHole(piece)) {
        holes.push(piece);
        literals.push('');
      } else fixed = { ...fixed, ...piece };
    }
    const words = literals.join(' ').match(/\p{L}{2,}/gu)?.length ?? 0;
    const isCount = holes.length > 0 && holes.every(({ isNumber }) => isNumber);
    const fewest = isCount ? 1 : literals[0] === '' ? fewestWords : fewestWords - 1;
    if (words < fewest) return [];
    // Side by side, no one knows where one value ends.
    const isUnclear = literals.slice(1, -1).includes('');
    return isUnclear ? [] : [{ key, literals, holes, fixed }];
  });
}

type Piece = string | Hole | Template['fixed'];

function isHole(piece: Hole | Template['fixed']): piece is Hole {
  return typeof (piece as Partial<Hole>).isNumber === 'boolean';
}

/** A part of a message as the parser gives it; see `TYPE` of `@formatjs/icu-messageformat-parser`. */
interface Element {
  readonly type: number;
  readonly value?: unknown;
  readonly pluralType?: string;
  readonly options?: Readonly<Record<string, { readonly value: readonly Element[] }>>;
}

function formsOf(source: string): readonly (readonly Piece[])[] {
  const format = new IntlMessageFormat(source, 'en', undefined, { ignoreTag: true });
  return expand(format.getAst() as readonly Element[], undefined);
}

function expand(elements: readonly Element[], counted: string | undefined): readonly Piece[][] {
  let forms: readonly Piece[][] = [[]];
  for (const element of elements) {
    const following = formsOfElement(element, counted);
    forms = forms.flatMap((form) => following.map((next) => [...form, ...next]));
    if (forms.length > mostForms) return [];
  }
  return forms;
}

function formsOfElement(
  { type, value, pluralType, options = {} }: Element,
  counted: string | undefined,
): readonly Piece[][] {
  const name = String(value);
  switch (type) {
    case 0:
      return [[name]];
    case 1:
      return [[{ name, isNumber: name === counted }]];
    case 2:
      return [[{ name, isNumber: true }]];
    case 5:
      return Object.entries(options).flatMap(([option, { value: inner }]) =>
        expand(inner, counted).map((form) => [{ [name]: option }, ...form]),
      );
    case 6:
      return Object.entries(options).flatMap(([option, { value: inner }]) => {
        const isOne = option === 'one' && pluralType === 'cardinal';
        const exact = isOne ? 1 : Number(/^=(\d+)$/.exec(option)?.[1]);
        return expand(inner, name).map((form) =>
          Number.isNaN(exact) ? form : [{ [name]: exact }, ...form],
        );
      });
    case 7:
      return [[{ name: counted ?? '', isNumber: true }]];
    default:
      return [];
  }
}

const englishNumber = /^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$|^-?\d+(?:\.\d+)?$/;

/** Goes from left to right once: what is recognised may be written by anyone. */
function valuesIn(template: Template, english: string): RecognisedText['values'] | undefined {
  const { literals, holes, fixed } = template;
  const [first = '', ...others] = literals;
  if (!english.startsWith(first)) return undefined;
  if (others.length === 0) return english === first ? fixed : undefined;
  const values: Record<string, string | number> = { ...fixed };
  let from = first.length;
  for (const [index, literal] of others.entries()) {
    const isLast = index === others.length - 1;
    const end = isLast
      ? english.endsWith(literal)
        ? english.length - literal.length
        : -1
      : english.indexOf(literal, from + 1);
    if (end <= from) return undefined;
    const hole = holes[index];
    const said = english.slice(from, end);
    if (hole === undefined) return undefined;
    if (hole.isNumber && !englishNumber.test(said)) return undefined;
    const value = hole.isNumber ? Number(said.replaceAll(',', '')) : said;
    // One value that stands twice is the same in both places.
    if (Object.hasOwn(values, hole.name) && values[hole.name] !== value) return undefined;
    values[hole.name] = value;
    from = end + literal.length;
  }
  return values;
}
