import type { Config } from './config.ts';

type NamingConfig = Pick<Config, 'Hub' | 'Authenticator'>;

/** Users whose accounts the configuration makes, as they are written there. */
export function usersNamedIn({ Hub, Authenticator }: NamingConfig): readonly string[] {
  return [
    ...Authenticator.admin_users,
    ...Authenticator.allowed_users,
    ...[...Hub.load_groups, ...Hub.load_roles].flatMap(({ users = [] }) => users),
  ];
}

/**
 * Name of the authenticator for which accounts are made before their owners come: the configured one, the
 * only one, or the one that keeps passwords; undefined where that leaves several.
 */
export function accountAuthenticatorOf({
  Authenticator,
  authenticators,
}: Pick<Config, 'Authenticator' | 'authenticators'>): string | undefined {
  if (Authenticator.account_authenticator !== undefined) return Authenticator.account_authenticator;
  const [only, ...others] = authenticators;
  if (others.length === 0) return only?.name;
  // At a provider people may choose their names; a password is given by the hub itself.
  return authenticators.find((entry) => entry.class === 'password')?.name;
}
