import { HubError } from '../errors.ts';
import { joined, type Phrase, translated } from '../texts/text.ts';

const mistakes: ReadonlySet<string> = new Set(['bad_request', 'conflict', 'forbidden']);

/** What to tell on a form; anything that is not a mistake in it is thrown again. */
export function problemOf(error: unknown): Phrase {
  if (!(error instanceof HubError) || !mistakes.has(error.code)) throw error;
  return withHint(error);
}

/** What has happened and what to do about it. */
export function withHint({ shown: { message, hint } }: HubError): Phrase {
  const told = translated(message);
  return hint === undefined ? told : joined([told, translated(hint)]);
}
