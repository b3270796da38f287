import { z } from 'zod';

const languageTag = z
  .string()
  .regex(
    /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/,
    'is not the tag of a language such as en, de or pt-BR',
  );

/** A text for all readers, or an object with one for each language, which is `translation`. */
export function localizedText<Text extends z.ZodType<string>>(text: Text, translation = text) {
  const byLanguage = z
    .record(languageTag, translation)
    .refine((texts) => Object.keys(texts).length > 0, 'needs a text, as in {"en": "…", "de": "…"}')
    .refine(
      (texts) => Object.keys(texts).length <= maxLanguages,
      `takes at most ${maxLanguages} languages`,
    );
  return z.union([text, byLanguage], {
    error: 'must be text, or an object with one for each language, as in {"en": "…", "de": "…"}',
  });
}

/** More than any hub is read in: what is given is sent to gateways too. */
const maxLanguages = 50;

/** Settings of `Hub` for the languages of its pages. */
export const languageSettings = {
  language: languageTag
    .default('en')
    .describe(
      'Language for users who have chosen none and whose browser asks for none that is available: `en`, `de`, or one from `languages_dir`.',
    ),
  languages_dir: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Folder with further languages and changed texts, one `<tag>.json` each, such as `fr.json`; `hub texts` prints a template. Invalid entries are skipped, and `hub check` reports them.',
    ),
};
