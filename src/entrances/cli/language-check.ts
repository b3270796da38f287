import { basename, resolve } from 'node:path';
import type { Branding } from '../../platform/branding/branding.ts';
import type { Config } from '../../platform/config/config.ts';
import { languageSettingsOf } from '../../platform/config/language-settings.ts';
import { didYouMean } from '../../platform/config/suggestion.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { loadLanguages } from '../../platform/texts/languages.ts';
import { type LocalizedText, readLocalizedText } from '../../platform/texts/text.ts';

/** Checks what the operator wrote for readers of a language: what is wrong in it is left out, and stops nothing. */
export async function checkLanguages(config: Config, branding: Branding): Promise<ConfigProblem[]> {
  const settings = languageSettingsOf(config);
  const { all, problems } = await loadLanguages(settings);
  const known = all.map(({ tag }) => tag);
  const found = problems.map(({ file, key, line, message }) => ({
    path: 'Hub.languages_dir',
    message:
      key === undefined
        ? `${file} ${message}`
        : `${file}${line === undefined ? '' : `, line ${line}`}: the text ${JSON.stringify(key)} ${message}; the built-in text is shown`,
  }));
  for (const { path, tag, what } of tagsIn(config, branding)) {
    if (known.includes(tag)) continue;
    const message = `${what}, and no page is in ${tag}: there are ${known.join(', ')}, and what Hub.languages_dir adds${didYouMean(tag, known)}`;
    found.push({ path, message });
  }
  const { defaultLanguage } = settings;
  if (known[0] === defaultLanguage) return found;
  const isThere = problems.some(({ file }) => basename(file) === `${defaultLanguage}.json`);
  const why = isThere
    ? `${defaultLanguage}.json in Hub.languages_dir has no text that can be used`
    : `there is no ${defaultLanguage}.json in Hub.languages_dir for it`;
  const message = `${why}; pages are in English. There are ${known.join(', ')}`;
  return [...found, { path: 'Hub.language', message }];
}

interface TagInUse {
  /** The setting. */
  readonly path: string;
  readonly tag: string;
  readonly what: string;
}

/** Every language for which there is a text or a part of a page. */
function tagsIn(config: Config, { templatesIn }: Branding): TagInUse[] {
  const { templates_dir: folder } = config.Hub;
  return [
    ...localizedTextsOf(config).flatMap(([path, own]) =>
      typeof own === 'object'
        ? Object.keys(own).map((tag) => ({ path: `${path}.${tag}`, tag, what: 'is never shown' }))
        : [],
    ),
    ...Object.entries(templatesIn).flatMap(([tag, templates]) =>
      Object.keys(templates).map((name) => ({
        path: 'Hub.templates_dir',
        tag,
        what: `${resolve(config.directory, folder ?? '', `${name}.${tag}.html`)} is never shown`,
      })),
    ),
  ];
}

const textsOfService = ['title', 'description', 'group', 'contact'];

const announced = [
  'announcement_login',
  'announcement_home',
  'announcement_spawn',
  'announcement_logout',
] as const;

/** What authenticators are called on pages. */
const labels = ['label', 'login_service'];

const memberOf = (options: unknown, key: string): unknown =>
  typeof options === 'object' && options !== null && Object.hasOwn(options, key)
    ? (options as Readonly<Record<string, unknown>>)[key]
    : undefined;

const labelsIn = (options: unknown, path: string) =>
  labels.map((key) => [`${path}.${key}`, readLocalizedText(memberOf(options, key))] as const);

/** The texts of the configuration that may be in languages, each with its setting. */
function localizedTextsOf({
  Hub,
  Spawner,
  pluginSections,
  authenticators,
}: Config): readonly (readonly [string, LocalizedText | undefined])[] {
  return [
    ...Object.entries(pluginSections).flatMap(([section, options]) => labelsIn(options, section)),
    ...authenticators.flatMap(({ options }, index) =>
      labelsIn(options, `Hub.authenticator_class[${index}]`),
    ),
    ['Hub.title', Hub.title],
    ['Hub.login_message', Hub.login_message],
    ['Hub.footer_text', Hub.footer_text],
    ['Hub.terms_url', Hub.terms_url],
    ...announced.map((name) => [`Hub.${name}`, Hub[name]] as const),
    ...(typeof Hub.announcement === 'object'
      ? [['Hub.announcement.text', Hub.announcement.text] as const]
      : []),
    ...Hub.footer_links.flatMap(({ title, url }, index) => [
      [`Hub.footer_links[${index}].title`, title] as const,
      [`Hub.footer_links[${index}].url`, url] as const,
    ]),
    ...Hub.services.flatMap(({ info }, index) =>
      textsOfService.map(
        (key) => [`Hub.services[${index}].info.${key}`, readLocalizedText(info[key])] as const,
      ),
    ),
    ...Spawner.profiles.flatMap(({ display_name, description }, index) => [
      [`Spawner.profiles[${index}].display_name`, display_name] as const,
      [`Spawner.profiles[${index}].description`, description] as const,
    ]),
  ];
}
