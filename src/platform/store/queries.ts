import { type Compilable, type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** Stands in a compiled query where a parameter will be. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Compiles a statement that is run often once, and puts parameters in. It is described with stand-ins for them, which
 * may only be handed on to Kysely; there is nothing to read in them.
 */
function prepareStatement<Parameters extends object, Found>(
  build: (parameters: Parameters) => Compilable<Found>,
): (parameters: Parameters) => CompiledQuery<Found> {
  let compiled: CompiledQuery<Found> | undefined;
  return (given) => {
    compiled ??= build(standIns as Parameters).compile();
    const parameters = compiled.parameters.map((parameter) =>
      parameter instanceof Placeholder ? given[parameter.name as keyof Parameters] : parameter,
    );
    return { ...compiled, parameters };
  };
}

/**
 * Prepares a query that is asked often: `build` describes it once, with stand-ins for the parameters,
 * and later only they are put in. Describing and compiling takes longer than SQLite takes to answer.
 */
export function prepareQuery<Parameters extends object, Found>(
  kysely: Kysely<Tables>,
  build: (parameters: Parameters) => Compilable<Found>,
): (parameters: Parameters) => Promise<Found[]> {
  const statement = prepareStatement(build);
  return async (given) => (await kysely.executeQuery<Found>(statement(given))).rows;
}

const standIns: object = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });

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

/** Whether a column has a text in it, in either case of ASCII letters: databases' own lower() knows no others. */
export function hasInIt(column: string, text: string): RawBuilder<boolean> {
  const lowerCase = text.normalize('NFC').replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return sql<boolean>`lower(${sql.ref(column)}) like ${containing(lowerCase)} escape '\\'`;
}

/** A LIKE pattern for any place in a text, with `\` as the sign that escapes. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
