import { type RawBuilder, sql } from 'kysely';

/**
 * A subquery with the texts of a list, for `where('column', 'in', …)`. The list travels as a single
 * parameter: databases limit the number of parameters, and a list of names may be long.
 */
export function textsOf(
  texts: readonly string[],
  database: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<string> {
  return textsIn(JSON.stringify(texts), database);
}

/** As `textsOf`, of a list that is JSON already. */
export function textsIn(
  json: string,
  { dialect }: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<string> {
  return dialect === 'sqlite'
    ? sql<string>`(select value from json_each(${json}))`
    : sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`;
}

/**
 * A table of which each row has, as `value`, one element of a list: `select value ->> 0 from …` reads
 * the first field of rows. However many there are, the statement is the same and has one parameter.
 */
export function jsonRows(
  rows: readonly (readonly (string | number)[])[],
  database: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<unknown> {
  return jsonRowsIn(JSON.stringify(rows), database);
}

/** As `jsonRows`, of a list that is JSON already. */
export function jsonRowsIn(
  json: string,
  { dialect }: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<unknown> {
  return dialect === 'sqlite'
    ? sql`json_each(${json})`
    : sql`jsonb_array_elements(${json}::jsonb) as list(value)`;
}
