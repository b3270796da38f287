import type { Language } from './language.ts';
import { type Phrase, Text, written } from './text.ts';

/** A text that the operator wrote: one for all readers, or one for each language, by BCP 47 tag. */
export type LocalizedText = string | Readonly<Record<string, string>>;

/** A text of the operator among free data; what is none, or is empty, is left out. */
export function readLocalizedText(value: unknown): LocalizedText | undefined {
  if (isText(value)) return value.trim();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const texts = Object.entries(value).flatMap(([tag, each]) =>
    isText(each) ? [[tag, each.trim()]] : [],
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '';

/** As it is shown: in the language of the reader, else in the default one of the hub, else in the first there is. */
export function localizedPhrase(own: LocalizedText | Text): Phrase {
  if (typeof own === 'string' || own instanceof Text) return own;
  return written(
    (language) => bestFor(own, language) ?? own[language.defaultTag] ?? Object.values(own)[0] ?? '',
  );
}

/** As it is where no reader is known, in this language if it is there. */
export function localizedTextIn(own: LocalizedText, tag: string): string {
  if (typeof own === 'string') return own;
  return bestFor(own, { tag }) ?? Object.values(own)[0] ?? '';
}

/** What there is for readers of a language: where `pt-BR` has none of its own, it has that of `pt`. */
export function bestFor<Each>(
  byTag: Readonly<Record<string, Each>>,
  { tag }: Pick<Language, 'tag'>,
): Each | undefined {
  const subtags = tag.split('-');
  for (let length = subtags.length; length > 0; length -= 1) {
    const wanted = subtags.slice(0, length).join('-');
    if (Object.hasOwn(byTag, wanted)) return byTag[wanted];
  }
  return undefined;
}
