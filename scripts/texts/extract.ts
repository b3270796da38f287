import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Expression, parseSync, type TemplateLiteral, Visitor } from 'oxc-parser';
import { keyOf } from '../../src/platform/texts/language.ts';

const source = join(import.meta.dirname, '..', '..', 'src');

/** The files of the program, relative to `src`. */
export function sourceFiles(): string[] {
  return globSync('**/*.ts', { cwd: source })
    .filter((path) => !path.endsWith('.test.ts'))
    .sort();
}

export function readSource(path: string): string {
  return readFileSync(join(source, path), 'utf8');
}

/** The keys of all texts, each with the files in which it stands. */
export function textsOfSource(): Map<string, string[]> {
  const texts = new Map<string, string[]>();
  for (const path of sourceFiles()) {
    for (const key of textsIn(path, readSource(path))) {
      texts.set(key, [...(texts.get(key) ?? []), path]);
    }
  }
  return texts;
}

/** The keys of the texts in a file. Throws an Error for one that is not written out there. */
export function textsIn(path: string, code: string): Set<string> {
  const keys = new Set<string>();
  // Others have functions of these names too.
  const hasTexts = /from '(?:[\w./-]*\/texts|\.)\/text\.ts'/.test(code);
  if (!hasTexts) return keys;
  const hasMessages =
    /import \{[^}]*\bmessage\b[^}]*\} from '(?:[\w./-]*\/texts|\.)\/text\.ts'/.test(code);
  const { program } = parseSync(path, code, { lang: 'ts' });
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      if (tag.type !== 'Identifier' || tag.name !== 'text') return;
      keys.add(keyOfTemplate(path, quasi));
    },
    CallExpression({ callee, arguments: [first, , options] }) {
      if (!hasMessages || callee.type !== 'Identifier' || callee.name !== 'message') return;
      if (first?.type !== 'Literal' || typeof first.value !== 'string') {
        throw new Error(`${path}: a message must be written out where it is made`);
      }
      keys.add(keyOf(first.value, contextIn(options)));
    },
  }).visit(program);
  return keys;
}

function keyOfTemplate(path: string, { quasis }: TemplateLiteral): string {
  const parts = quasis.map(({ value }) => value.cooked ?? '');
  if (parts.some((part) => /[{}]/.test(part))) {
    throw new Error(`${path}: a text has braces: ${parts.join('…')}`);
  }
  return parts.reduce((joined, part, index) => `${joined}{${index - 1}}${part}`);
}

/** Where errors reach no page, and why. */
export const withoutPages: readonly (readonly [place: RegExp, why: string])[] = [
  [
    /^entrances\/cli\/|^(?:operations|composition)\/(?:perform-)?command[\w-]*\.ts$/,
    'the command line speaks English',
  ],
  [/^(?:client|singleuser)\//, 'runs in services and servers, which have no catalogues'],
  [/^entrances\/api\//, 'the API speaks English, and scripts of pages show none of its errors'],
  [/^workloads\/jupyterhub\//, 'a command alone comes here'],
  [/^traffic\/gateway\/proxy-api\.ts$/, 'an API'],
  [/^platform\/http\/server\/listener\.ts$/, 'serves the API alone'],
  [/^identity\/accounts\/password-callers\.ts$/, 'for programs that send a password to the API'],
];

/**
 * What `HubError`s of a file say that is no text, though pages show it in the language of their reader: the
 * expressions. A constant of the file is looked up.
 */
export function readErrors(path: string, code: string): readonly string[] {
  const others: string[] = [];
  const { program } = parseSync(path, code, { lang: 'ts' });
  const constants = new Map<string, Expression[]>();
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.type !== 'Identifier' || init === null) return;
      constants.set(id.name, [...(constants.get(id.name) ?? []), init]);
    },
  }).visit(program);

  function read(node: Expression, seen: ReadonlySet<string> = new Set()): void {
    const parts = partsOf(node, seen);
    if (parts === undefined) {
      others.push(code.slice(node.start, node.end).replaceAll(/\s+/g, ' '));
      return;
    }
    const name = node.type === 'Identifier' ? [node.name] : [];
    for (const part of parts) read(part, new Set([...seen, ...name]));
  }

  /** The expressions of which one is said, none where it is written out; undefined where that is not known. */
  function partsOf(node: Expression, seen: ReadonlySet<string>): Expression[] | undefined {
    if (node.type === 'ConditionalExpression') return [node.consequent, node.alternate];
    if (node.type === 'LogicalExpression') {
      return node.operator === '&&' ? [node.right] : [node.left, node.right];
    }
    if (node.type === 'TaggedTemplateExpression') {
      return node.tag.type === 'Identifier' && node.tag.name === 'text' ? [] : undefined;
    }
    if (node.type === 'CallExpression') return makesText(node.callee) ? [] : undefined;
    if (node.type === 'MemberExpression' && node.object.type === 'Identifier') {
      const [object] = constants.get(node.object.name) ?? [];
      if (object?.type !== 'ObjectExpression') return undefined;
      return object.properties.flatMap((each) => (each.type === 'Property' ? [each.value] : []));
    }
    if (node.type !== 'Identifier') return undefined;
    if (node.name === 'undefined') return [];
    return seen.has(node.name) ? undefined : constants.get(node.name);
  }

  function readOptions(node: Expression): void {
    if (node.type === 'ConditionalExpression') {
      readOptions(node.consequent);
      readOptions(node.alternate);
    } else if (node.type === 'LogicalExpression') readOptions(node.right);
    if (node.type !== 'ObjectExpression') return;
    for (const property of node.properties) {
      if (property.type === 'SpreadElement') readOptions(property.argument);
      else if (property.key.type === 'Identifier' && property.key.name === 'hint') {
        read(property.value);
      }
    }
  }

  new Visitor({
    NewExpression({ callee, arguments: [, said, options] }) {
      if (callee.type !== 'Identifier' || callee.name !== 'HubError') return;
      if (said !== undefined && said.type !== 'SpreadElement') read(said);
      if (options !== undefined && options.type !== 'SpreadElement') readOptions(options);
    },
  }).visit(program);
  return others;
}

/** What makes texts of texts. */
const textFunctions: ReadonlySet<string> = new Set(['message', 'joined', 'withHint']);

function makesText(callee: Expression): boolean {
  return callee.type === 'Identifier' && textFunctions.has(callee.name);
}

interface Node {
  readonly type: string;
}

function contextIn(options: Node | undefined): string | undefined {
  const { properties = [] } = (options ?? {}) as {
    properties?: readonly { key?: { name?: string }; value?: { value?: unknown } }[];
  };
  const context = properties.find(({ key }) => key?.name === 'context')?.value?.value;
  return typeof context === 'string' ? context : undefined;
}

/** Attributes whose values people read or hear. */
const spokenAttribute = /\b(?:title|alt|aria-label|placeholder|label)="([^"]*)"/g;

/** English in the markup of a file that is in no text, each piece as it stands there. */
export function untranslatedIn(path: string, code: string): string[] {
  const found: string[] = [];
  if (!code.includes('html`')) return found;
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      if (tag.type !== 'Identifier' || tag.name !== 'html') return;
      // What stands for a value has no letters.
      const markup = quasi.quasis.map(({ value }) => value.cooked ?? '').join('\u0000');
      // An attribute without a value.
      if (/^ [a-z]+$/.test(markup)) return;
      const spoken = [...markup.matchAll(spokenAttribute)].map(([, value = '']) => value);
      const visible = markup
        .replaceAll(/<[^<>]*>/g, '\n')
        // A template may begin or end within a tag.
        .replace(/^[^<>\n]*="[^<>]*>?|<[^<>]*$/, '')
        .replaceAll(/&[a-z]+;/g, ' ')
        .split('\n');
      for (const piece of [...visible, ...spoken]) {
        if (/\p{L}{2}/u.test(piece)) found.push(piece.trim().replaceAll('\u0000', '…'));
      }
    },
  }).visit(parseSync(path, code, { lang: 'ts' }).program);
  return found;
}

/** Calls whose strings people read elsewhere, if at all: in the log, in the reference, in `hub check` and `hub doctor`. */
const ofOperators =
  /^(?:log|logger|console|z|[a-z]*[lL]og)\.|\.(?:describe|meta|refine|warn|info|error|debug)$|^(?:warning|ok|wrong|failing|report|problem|finding)$/;

/** Errors for developers, such as an `error_description` (RFC 6749 §5.2), and those that end the program. */
const ofDevelopers: ReadonlySet<string> = new Set([
  'TypeError',
  'RangeError',
  'ConfigError',
  'StartupError',
  'OAuthError',
]);

const threeWords = /\p{L}{2,},? \p{Ll}+,? \p{Ll}+/u;

/** English in a file that reads like a sentence and is in no text, each as it stands there. */
export function sentencesIn(path: string, code: string): string[] {
  const found: string[] = [];
  const { program } = parseSync(path, code, { lang: 'ts' });
  let outside = 0;
  const enter = (isRemote: boolean) => {
    if (isRemote) outside += 1;
  };
  const leave = (isRemote: boolean) => {
    if (isRemote) outside -= 1;
  };
  const isTag = ({ tag }: { readonly tag: Expression }) =>
    tag.type === 'Identifier' && (tag.name === 'text' || tag.name === 'html');
  const isCall = ({ callee }: { readonly callee: Expression }) => {
    const name = code.slice(callee.start, callee.end);
    return name === 'message' || ofOperators.test(name);
  };
  const isError = ({ callee }: { readonly callee: Expression }) =>
    callee.type === 'Identifier' && ofDevelopers.has(callee.name);
  const take = (said: string, shown: string) => {
    if (outside === 0 && threeWords.test(said)) found.push(shown);
  };
  new Visitor({
    TaggedTemplateExpression: (node) => enter(isTag(node)),
    'TaggedTemplateExpression:exit': (node) => leave(isTag(node)),
    CallExpression: (node) => enter(isCall(node)),
    'CallExpression:exit': (node) => leave(isCall(node)),
    NewExpression: (node) => enter(isError(node)),
    'NewExpression:exit': (node) => leave(isError(node)),
    Literal({ value }) {
      if (typeof value === 'string') take(value, value);
    },
    TemplateLiteral(node) {
      const parts = node.quasis.map(({ value }) => value.cooked ?? '');
      const key = parts.reduce((joined, part, index) => `${joined}{${index - 1}}${part}`);
      take(key, key);
    },
  }).visit(program);
  return found;
}
