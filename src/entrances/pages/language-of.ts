import type { IncomingHttpHeaders } from 'node:http';
import type { Language } from '../../platform/texts/language.ts';
import type { Languages } from '../../platform/texts/languages.ts';
import { readPreferences } from './preferences.ts';

/** The language in which a browser is answered: what was chosen in it, else what it asks for. */
export function languageOf(
  languages: Pick<Languages, 'find' | 'negotiate'>,
  headers: Pick<IncomingHttpHeaders, 'cookie' | 'accept-language'>,
): Language {
  const { language } = readPreferences(headers.cookie);
  return (
    (language === undefined ? undefined : languages.find(language)) ??
    languages.negotiate(headers['accept-language'])
  );
}
