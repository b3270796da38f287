import { closestName } from '../platform/config/suggestion.ts';

/** A parameter of a query that nothing declares. */
export interface UnknownParameter {
  readonly name: string;
  /** The declared one that was most likely meant. */
  readonly meant: string | undefined;
}

/** Shorter words resemble too many others. */
const minMeantLength = 4;

/** The known word that was most likely meant by another. */
export function meantBy(word: string, known: readonly string[]): string | undefined {
  return word.length < minMeantLength ? undefined : closestName(word, known);
}

/** The parameters of a query that are not among those declared. */
export function unknownParameters(query: object, declared: readonly string[]): UnknownParameter[] {
  return Object.keys(query)
    .filter((name) => !declared.includes(name))
    .map((name) => ({ name, meant: meantBy(name, declared) }));
}
