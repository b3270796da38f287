import { clientRecipes } from '../../src/entrances/pages/admin/client-setup.ts';
import { auditActions } from '../../src/platform/audit/actions.ts';
import { Language, sourceOf, type Values } from '../../src/platform/texts/language.ts';

/** English with each text in brackets, so that what stands outside them is seen to be in no catalogue. */
export class BracketLanguage extends Language {
  constructor(keys: Iterable<string> = []) {
    super('en', new Map([...keys].map((key) => [key, sourceOf(key)])));
  }

  override fill(key: string, values: Values): readonly unknown[] {
    return ['⟦', ...super.fill(key, values), '⟧'];
  }

  override written(parts: readonly unknown[]): readonly unknown[] {
    return ['⟦', ...parts, '⟧'];
  }
}

/** Names that are the same in every language, and what is typed as an example. */
const codes: ReadonlySet<string> = new Set([
  ...Object.keys(auditActions),
  ...clientRecipes.map(({ app }) => app),
  'user',
  'admin',
  'label-studio',
  'http://127.0.0.1:9000',
  'python3 -m gallery --port 9000',
  'NAME=value',
  'X-Api-Key: …',
  'Accept-Language',
  'X-Frame-Options: DENY',
  'Server',
  'https://app.example.org/callback',
]);

/** A detail of the audit log, which is written for programs too. */
const auditDetail = /^[a-z_]+: \S*(?:; [a-z_]+: \S*)*;?(?: [a-z_]+:)?$/;

const spoken = /\s(?:title|alt|aria-label|placeholder|label)="([^"]*)"/g;

/** What people read or hear on a page and is in no brackets. */
export function unbracketedIn(markup: string): string[] {
  const body = markup
    .slice(markup.indexOf('<title>'))
    .replaceAll(/<(meta|link)\b[^>]*>|<code\b[^>]*>[^<]*<\/code>/g, '');
  const attributes = [...body.matchAll(spoken)].map(([, value = '']) => value);
  const pieces: string[] = [];
  for (const part of [body.replaceAll(/<[^>]*>/g, '\n'), ...attributes]) {
    let depth = 0;
    let outside = '';
    for (const sign of part) {
      if (sign === '⟦') depth += 1;
      if (depth === 0) outside += sign;
      if (sign === '⟧') depth -= 1;
    }
    pieces.push(...outside.split('\n'));
  }
  return pieces
    .map((piece) => piece.replaceAll(/&[a-z#0-9]+;/g, ' ').trim())
    .filter((piece) => /\p{L}{2}/u.test(piece) && !codes.has(piece) && !auditDetail.test(piece));
}
