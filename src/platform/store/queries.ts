import {
  type Compilable,
  type CompiledQuery,
  type Kysely,
  type RawBuilder,
  type SelectQueryBuilder,
  sql,
  type Transaction,
} from 'kysely';
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
export function prepareStatement<Parameters extends object, Found>(
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

/** How many rows a query finds. */
export async function countOf<Database, Names extends keyof Database>(
  query: SelectQueryBuilder<Database, Names, Record<never, never>>,
): Promise<number> {
  const { total } = await query
    .select(({ fn }) => fn.countAll().as('total'))
    .$castTo<{ readonly total: number | bigint | string }>()
    .executeTakeFirstOrThrow();
  return Number(total);
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
  rows: readonly (readonly unknown[])[],
  { dialect }: { readonly dialect: 'sqlite' | 'postgres' },
): RawBuilder<unknown> {
  const json = JSON.stringify(rows);
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

/** What waits for the end of a transaction. */
interface Ending {
  last: Last<unknown> | undefined;
  readonly afterCommit: (() => void)[];
}

interface Last<Item> {
  readonly items: Item[];
  readonly work: LastWork<Item>;
}

/** Done to everything that was left for the end of a transaction. */
type LastWork<Item> = (on: Kysely<Tables>, items: readonly Item[]) => Promise<void>;

const endings = new WeakMap<Kysely<Tables>, Ending>();

/**
 * Runs work in one transaction, with the last thing that was left for its end, and then, once it is committed, what was
 * put off until then.
 */
export async function inTransaction<Result>(
  kysely: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  const ending: Ending = { last: undefined, afterCommit: [] };
  const result = await kysely.transaction().execute(async (transaction) => {
    endings.set(transaction, ending);
    const done = await work(transaction);
    const { last } = ending;
    if (last !== undefined) await last.work(transaction, last.items);
    return done;
  });
  for (const each of ending.afterCommit) each();
  return result;
}

/**
 * Leaves something for the end of a transaction, which fails with it; nothing comes after it. False outside of a
 * transaction, and where other work is left for its end already.
 */
export function beforeCommit<Item>(
  on: Kysely<Tables>,
  items: Item[],
  work: LastWork<Item>,
): boolean {
  const ending = endings.get(on);
  if (ending === undefined) return false;
  if (ending.last === undefined) {
    ending.last = { items, work: work as LastWork<unknown> };
    return true;
  }
  if (ending.last.work !== (work as LastWork<unknown>)) return false;
  ending.last.items.push(...items);
  return true;
}

/** Calls back when the transaction is committed, and never when it is not; at once outside of one. */
export function afterCommit(on: Kysely<Tables>, callback: () => void): void {
  const ending = endings.get(on);
  if (ending === undefined) callback();
  else ending.afterCommit.push(callback);
}
