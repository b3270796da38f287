import type { ConfigProblem } from '../errors.ts';
import type { Config } from './config.ts';
import { unitOfPath } from './problem-path.ts';

/** Checks for problems that a single schema cannot find. It starts nothing and changes nothing. */
export type ConfigCheck = (
  config: Config,
) => readonly ConfigProblem[] | Promise<readonly ConfigProblem[]>;

/**
 * Runs checks on what is sound of a configuration. What they say about a setting that has a problem
 * already is left out: it would be a consequence, and fixing the first may settle the second.
 */
export async function runChecks(
  checks: readonly ConfigCheck[],
  config: Config,
  context: {
    readonly known: readonly ConfigProblem[];
    readonly originalPath: (path: string) => string;
  },
): Promise<ConfigProblem[]> {
  const found = await Promise.all(checks.map((check) => check(config)));
  const unsound = new Set(
    context.known
      .filter(({ message }) => !message.startsWith('is not a known setting'))
      .map(({ path }) => unitOfPath(path)),
  );
  // A name is what it is, whatever else is wrong with what bears it.
  const known = new Set(context.known.map(({ path }) => path));
  const isName = (path: string) => path.endsWith('.name') && !known.has(path);
  return found
    .flat()
    .map((problem) => ({ ...problem, path: context.originalPath(problem.path) }))
    .filter(
      ({ path }) =>
        isName(path) || (!unsound.has(unitOfPath(path)) && !unsound.has(sectionAndKey(path))),
    );
}

function sectionAndKey(path: string): string {
  return unitOfPath(path).replace(/\[\d+\]$/, '');
}
