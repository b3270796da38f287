import type { Compilable, CompiledQuery, Kysely } from 'kysely';
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
