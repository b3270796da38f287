import { HubError, type HubErrorCode } from '../errors.ts';
import { type Phrase, text } from '../texts/text.ts';

/** What is wrong with one member of a request: `url: is not an http:// or https:// URL.` */
export function fieldError(
  name: string,
  problem: Phrase = text`is not valid`,
  code: HubErrorCode = 'bad_request',
): HubError {
  return new HubError(code, text`${name}: ${problem}.`, { field: { name, problem } });
}
