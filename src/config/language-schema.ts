import { z } from 'zod';

/** Settings of `Hub` for the languages of its pages. */
export const languageSettings = {
  language: z
    .string()
    .regex(
      /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/,
      'is not the tag of a language such as en, de or pt-BR',
    )
    .default('en')
    .describe(
      'Language of pages for users whose browser asks for none that there is, and who have chosen none: `en`, `de`, or one of `languages_dir`.',
    ),
  languages_dir: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Folder with further languages and changed texts, a file `<tag>.json` each, such as `fr.json`; `hub texts` prints one to begin with. What is wrong in a file is left out, and `hub check` says where.',
    ),
};
