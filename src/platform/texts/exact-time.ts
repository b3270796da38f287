import { type Text, written } from './text.ts';

/** A moment to the minute, in UTC: `2026-01-31 18:00 UTC`, or as the language has it. */
export function exactTime(moment: Date): Text {
  return written((language) => {
    // Of the two orders of English, neither is clear to all.
    if (language.tag === 'en') return `${moment.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
    const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const;
    const format = language.format('moment', (tag) => new Intl.DateTimeFormat(tag, options));
    return `${format.format(moment)} UTC`;
  });
}
