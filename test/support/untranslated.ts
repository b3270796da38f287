/**
 * Files of `src` whose markup still has words that are in no catalogue, by their folder in `pages`. To become empty, and
 * go.
 */
export const filesToTranslate: ReadonlySet<string> = new Set<string>([
  // admin
  // login
]);

/** Sample pages that still show words that are in no catalogue. To become empty, and go. */
export const pagesToTranslate: ReadonlySet<string> = new Set<string>([
  // login
  // account
  'account',
  'account-protected',
  // administration: users
  // administration
]);
