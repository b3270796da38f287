import { type RawBuilder, sql } from 'kysely';

/**
 * A subquery with the texts of a list, for `where('column', 'in', …)`. The list travels as a single
 * parameter: databases limit the number of parameters, and a list of names may be long.
 */
export function textsOf(
  texts: readonly string[],
  { dialect }: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<string> {
  const json = JSON.stringify(texts);
  return dialect === 'sqlite'
    ? sql<string>`(select value from json_each(${json}))`
    : sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`;
}
