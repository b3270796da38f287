import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';

/** The names typed into a field, one on each line: a comma may be part of one. Throws `bad_request` for none. */
export function namesIn(sent: URLSearchParams, field = 'names'): string[] {
  const names = (sent.get(field) ?? '').split(/[\r\n]+/).flatMap((name) => name.trim() || []);
  if (names.length === 0) throw new HubError('bad_request', text`Type at least one name.`);
  return names;
}
