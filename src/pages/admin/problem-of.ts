import { HubError } from '../../errors.ts';
import { joined, type Phrase } from '../../texts/text.ts';

const mistakes: ReadonlySet<string> = new Set(['bad_request', 'conflict', 'forbidden']);

/** What to tell on a form; anything that is not a mistake in it is thrown again. */
export function problemOf(error: unknown): Phrase {
  if (!(error instanceof HubError) || !mistakes.has(error.code)) throw error;
  const { message, hint } = error.shown;
  return hint === undefined ? message : joined([message, hint]);
}
