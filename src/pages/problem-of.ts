import { HubError } from '../errors.ts';
import { joined, type Text, translated } from '../texts/text.ts';

const mistakes: ReadonlySet<string> = new Set(['bad_request', 'conflict', 'forbidden']);

/** What to tell on a form; anything that is not a mistake in it is thrown again. */
export function problemOf(error: unknown): Text {
  if (!(error instanceof HubError) || !mistakes.has(error.code)) throw error;
  return withHint(error);
}

/** What has happened and what to do about it. */
export function withHint({ shown: { message, hint } }: HubError): Text {
  return joined([message, ...(hint === undefined ? [] : [hint])].map(translated));
}
