import { message, type Text, type TextValue } from './text.ts';

/** A length of time within another text: `30 seconds`. */
export function inSeconds(count: TextValue): Text {
  return message('{seconds, plural, one {# second} other {# seconds}}', { seconds: count });
}
