import { z } from 'zod';

/** What pages call a way to log in: one text, or one for each language by its BCP 47 tag. */
export const labelOption = z.union(
  [
    z.string().min(1),
    z
      .record(z.string(), z.string().min(1))
      .refine(
        (texts) => Object.keys(texts).length > 0,
        'needs a text, as in {"en": "…", "de": "…"}',
      ),
  ],
  {
    error: (issue) =>
      typeof issue.input === 'string' || (typeof issue.input === 'object' && issue.input !== null)
        ? undefined
        : 'must be text, or an object with one for each language, as in {"en": "…", "de": "…"}',
  },
);
