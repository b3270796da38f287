import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { keyOf } from '../../src/texts/language.ts';

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
  // Others have functions of these names too, and need no parsing.
  if (!/from '(?:[./]*\/texts|\.)\/text\.ts'/.test(code)) return keys;
  const hasMessages = /import \{[^}]*\bmessage\b[^}]*\} from '(?:[./]*\/texts|\.)\/text\.ts'/.test(
    code,
  );
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      if (tag.type !== 'Identifier' || tag.name !== 'text') return;
      const parts = quasi.quasis.map(({ value }) => value.cooked ?? '');
      if (parts.some((part) => /[{}]/.test(part))) {
        throw new Error(`${path}: a text has braces: ${parts.join('…')}`);
      }
      keys.add(parts.reduce((joined, part, index) => `${joined}{${index - 1}}${part}`));
    },
    CallExpression({ callee, arguments: [first, , options] }) {
      if (!hasMessages || callee.type !== 'Identifier' || callee.name !== 'message') return;
      if (first?.type !== 'Literal' || typeof first.value !== 'string') {
        throw new Error(`${path}: a message must be written out where it is made`);
      }
      keys.add(keyOf(first.value, contextIn(options)));
    },
  }).visit(parseSync(path, code, { lang: 'ts' }).program);
  return keys;
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
