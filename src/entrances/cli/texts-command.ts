import type { Command } from 'commander';
import { languageSettingsOf } from '../../platform/config/language-settings.ts';
import { HubError } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/texts/language.ts';
import { loadLanguages } from '../../platform/texts/languages.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub texts`. */
export function addTextsCommand(program: Command, io: CliIo): void {
  withConfig(program.command('texts'))
    .description('print the texts of all pages as JSON, to begin a translation with')
    .option('-l, --language <tag>', 'with the translations that there are, such as de')
    .action(async (flags: { readonly language?: string }, command: Command) => {
      const { config } = await loadFor(command, io);
      const { keys, find, all } = await loadLanguages(languageSettingsOf(config));
      const language = find(flags.language ?? 'en');
      if (language === undefined) {
        throw new HubError('not_found', `There is no language ${flags.language}.`, {
          hint: `There are ${all.map(({ tag }) => tag).join(', ')}. Without --language the texts are in English.`,
        });
      }
      const texts = keys.map((key) => [key, language.translationOf(key) ?? sourceOf(key)]);
      io.stdout.write(`${JSON.stringify(Object.fromEntries(texts), undefined, 2)}\n`);
    });
}
