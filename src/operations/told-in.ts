import { z } from 'zod';
import type { Language } from '../texts/language.ts';
import type { Languages } from '../texts/languages.ts';
import { translated } from '../texts/text.ts';

/** The query of operations that tell people something. */
export const languageQuery = z.object({
  language: z
    .string()
    .max(35)
    .optional()
    .describe(
      'In which language events speak, such as `de`; English unless there are texts in it.',
    ),
});

/** The events, with the named member in a language; as they are in English. */
export async function* toldIn<Event extends object>(
  events: AsyncIterable<Event>,
  member: keyof Event,
  language: Language | undefined,
): AsyncGenerator<Event> {
  for await (const event of events) {
    const said = event[member];
    const isTold = language !== undefined && typeof said === 'string';
    yield isTold ? { ...event, [member]: translated(said).in(language) } : event;
  }
}

/** The language that was asked for; undefined for English. */
export function languageAskedFor(
  { language }: z.output<typeof languageQuery>,
  languages: Pick<Languages, 'find'>,
): Language | undefined {
  return language === undefined ? undefined : languages.find(language);
}
