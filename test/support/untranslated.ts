/**
 * Files of `src` whose markup still has words that are in no catalogue, by their folder in `pages`. To become empty, and
 * go.
 */
export const filesToTranslate: ReadonlySet<string> = new Set<string>([
  // account
  'pages/account/account-page.ts',
  // admin
  // login
  'pages/login/confirm-login-page.ts',
  'pages/login/second-factor-page.ts',
]);

/** Sample pages that still show words that are in no catalogue. To become empty, and go. */
export const pagesToTranslate: ReadonlySet<string> = new Set<string>([
  // login
  'confirm-password',
  'confirm-directory',
  'confirm-code',
  'confirm-external',
  'confirm-go-on',
  'second-factor',
  'second-factor-passkey',
  'confirm-passkey',
  // account
  'account',
  'account-protected',
  // administration: users
  'admin-user',
  // administration
  'admin-roles',
  'admin-role',
  'admin-role-form',
  'admin-service',
  'admin-service-form',
  'admin-managed-service-form',
  'admin-activity',
]);
