import { z } from 'zod';
import { english, type Language } from '../platform/texts/language.ts';
import type { Languages } from '../platform/texts/languages.ts';
import { Text } from '../platform/texts/text.ts';

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

type Published<Event> = { readonly [Member in keyof Event]: Exclude<Event[Member], Text> };

/** The events, with the named member in a language. */
export async function* translateEvents<Event extends object>(
  events: AsyncIterable<Event>,
  member: keyof Event,
  language: Language,
): AsyncGenerator<Published<Event>> {
  for await (const event of events) {
    const said = event[member];
    yield {
      ...event,
      ...(said instanceof Text && { [member]: said.in(language) }),
    } as Published<Event>;
  }
}

/** The language that was asked for, else English. */
export function languageAskedFor(
  { language }: z.output<typeof languageQuery>,
  languages: Pick<Languages, 'find'>,
): Language {
  return (language === undefined ? undefined : languages.find(language)) ?? english;
}
