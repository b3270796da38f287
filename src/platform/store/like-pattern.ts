import { type RawBuilder, sql } from 'kysely';

/** Whether a column has a text in it, in either case of ASCII letters: databases' own lower() knows no others. */
export function hasInIt(column: string, text: string): RawBuilder<boolean> {
  const lowerCase = text.normalize('NFC').replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return sql<boolean>`lower(${sql.ref(column)}) like ${containing(lowerCase)} escape '\\'`;
}

/** A LIKE pattern for any place in a text, with `\` as the sign that escapes. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
