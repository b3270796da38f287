import { hubCommand } from '../files/program-folder.ts';
import { compilePattern, placeholdersOf, sourceOf } from './language.ts';

/** What is wrong with one text of a catalogue, or with all of it. */
export interface CatalogueProblem {
  /** Undefined where it is the whole file. */
  readonly key?: string;
  /** Where the key stands, counted from 1; undefined where it is written in another way. */
  readonly line?: number | undefined;
  /** What is wrong and how to fix it. */
  readonly message: string;
}

/**
 * Reads a catalogue: a JSON object of translations by key. What is wrong in it is left out of the result.
 *
 * @param known Keys of the texts that there are.
 */
export function readCatalogue(
  json: string,
  known: (key: string) => boolean,
): {
  readonly translations: ReadonlyMap<string, string>;
  readonly problems: readonly CatalogueProblem[];
} {
  const translations = new Map<string, string>();
  let content: unknown;
  try {
    content = JSON.parse(json);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { translations, problems: [{ message: `is not JSON: ${reason}` }] };
  }
  if (content === null || typeof content !== 'object' || Array.isArray(content)) {
    const message = 'must be a JSON object of translations by key: {"Log in": "Anmelden"}';
    return { translations, problems: [{ message }] };
  }
  const problems: CatalogueProblem[] = [];
  for (const [key, translation] of Object.entries(content)) {
    const message = known(key)
      ? problemOf(key, translation)
      : `is not a text of this version; ${hubCommand('texts')} lists them all`;
    if (message === undefined) translations.set(key, translation as string);
    else problems.push({ key, line: lineOf(key, json), message });
  }
  return { translations, problems };
}

function lineOf(key: string, json: string): number | undefined {
  const index = json.indexOf(JSON.stringify(key));
  return index === -1 ? undefined : json.slice(0, index).split('\n').length;
}

/** What is wrong with a translation; undefined for nothing. */
export function problemOf(key: string, translation: unknown): string | undefined {
  if (typeof translation !== 'string') return 'must be a string';
  if (translation.trim() === '') return 'must not be empty; leave the key out to show the English';
  const wanted = placeholdersOf(sourceOf(key));
  let given: ReadonlySet<string>;
  try {
    given = placeholdersOf(translation);
    compilePattern(translation, 'en');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const missing = [...wanted].find((name) => !given.has(name));
  if (missing !== undefined) return `lacks the placeholder {${missing}}`;
  const unknown = [...given].find((name) => !wanted.has(name));
  if (unknown === undefined) return undefined;
  const names = [...wanted].map((name) => `{${name}}`).join(', ');
  return `has the placeholder {${unknown}}, which the text does not know; ${names === '' ? 'it has none' : `it has ${names}`}`;
}
