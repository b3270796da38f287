import { HubError } from '../../errors.ts';

const mistakes: ReadonlySet<string> = new Set(['bad_request', 'conflict', 'forbidden']);

/** What to tell on a form; anything that is not a mistake in it is thrown again. */
export function problemOf(error: unknown): string {
  if (!(error instanceof HubError) || !mistakes.has(error.code)) throw error;
  return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
}
