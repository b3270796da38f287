import type { FormAuthenticator } from '../../src/plugin/plugin.ts';

/** The fields of a login by name and password. */
export const nameAndPassword = [
  { name: 'username', label: 'User name', type: 'text', autocomplete: 'username' },
  { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
] as const satisfies FormAuthenticator['login']['fields'];
