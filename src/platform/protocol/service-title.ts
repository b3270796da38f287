import { localizedPhrase, type Phrase, readLocalizedText } from '../texts/text.ts';

/** What a service is called on pages: its `info.title`, or its name. */
export function serviceTitle({
  name,
  info,
}: {
  readonly name: string;
  readonly info?: Readonly<Record<string, unknown>>;
}): Phrase {
  return localizedPhrase(readLocalizedText(info?.['title']) ?? name);
}
