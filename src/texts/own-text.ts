import type { Language } from './language.ts';
import { type Phrase, written } from './text.ts';

/** A text that the operator wrote: one for all readers, or one for each language, by BCP 47 tag. */
export type OwnText = string | Readonly<Record<string, string>>;

/** As it is shown: in the language of the reader, else in the default one of the hub, else in the first there is. */
export function ownPhrase(own: OwnText): Phrase {
  if (typeof own === 'string') return own;
  return written(
    (language) => bestFor(own, language) ?? own[language.defaultTag] ?? Object.values(own)[0] ?? '',
  );
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
