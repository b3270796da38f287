import { resolve } from 'node:path';
import type { LanguageSettings } from '../texts/languages.ts';
import type { Config } from './config.ts';

/** Which languages a configuration wants. */
export function languageSettingsOf(config: {
  readonly Hub: Partial<Pick<Config['Hub'], 'language' | 'languages_dir'>>;
  readonly directory?: string;
}): LanguageSettings {
  const { language, languages_dir: folder } = config.Hub;
  return {
    defaultLanguage: language,
    directory: folder === undefined ? undefined : resolve(config.directory ?? '', folder),
  };
}
