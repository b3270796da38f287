import type { Accounts } from '../accounts/accounts.ts';
import { createGroupMembers } from '../accounts/group-members.ts';
import { createIdentityLinks } from '../accounts/identity-links.ts';
import { createInvitations } from '../accounts/invitations.ts';
import { createLockouts } from '../accounts/lockouts.ts';
import { createPartialLogins, type PartialLogin } from '../accounts/partial-logins.ts';
import { createSecondFactors } from '../accounts/second-factors.ts';
import { createAccountPasswords } from '../authentication/account-passwords.ts';
import { createLoginThrottle, type ThrottleRecord } from '../authentication/login-throttle.ts';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { Authority } from '../rbac/authority.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { Stores } from './stores.ts';

/** What people's own accounts are made of. */
export type ComposedAccounts = ReturnType<typeof composeAccounts>;

/** Creates passwords, second factors, invitations and lock-outs. */
export function composeAccounts(deps: {
  readonly config: Config;
  readonly stores: Stores;
  readonly keyv: KeyvSpaces;
  readonly login: ComposedLogin;
  readonly logins: LoginSessions;
  readonly authority: Authority;
  readonly accounts: Accounts;
  readonly secrets: readonly Secret[];
}) {
  const { config, stores, keyv, login, logins, authority, accounts } = deps;
  const { authenticators } = login;
  const passwords = createAccountPasswords({
    authenticators,
    credentials: stores.credentials,
    passwordHasher: login.passwordHasher,
    endLoginsOf: (userId, options) => logins.endAllOfUser(userId, options),
  });
  const secondFactorThrottle = createLoginThrottle({
    ...config.Authenticator,
    records: keyv.space<ThrottleRecord>('second-factor-throttle'),
  });
  return {
    passwords,
    secondFactors: createSecondFactors({
      store: stores.secondFactors,
      throttle: secondFactorThrottle,
      hubTitle: config.Hub.title,
    }),
    partialLogins: createPartialLogins(keyv.space<PartialLogin>('login-steps')),
    partialLoginSealer: createSealer(deps.secrets, 'login-step'),
    invitations: createInvitations({
      store: stores.invitations,
      users: stores.users,
      credentials: stores.credentials,
      passwords,
      requireMayActOn: (caller, user) => accounts.requireMayActOn(caller, user),
    }),
    identityLinks: createIdentityLinks({
      identities: stores.identities,
      authenticators,
      credentials: stores.credentials,
      logins,
    }),
    groupMembers: createGroupMembers({ groups: stores.groups, roles: stores.roles, authority }),
    lockouts: createLockouts([login.throttle, secondFactorThrottle]),
    minimumPasswordLength: minimumPasswordLength(config),
    /** The authenticator whose accounts have their password here. */
    passwordAuthenticator: () =>
      authenticators.list.find(({ authenticator }) => authenticator.ownsAccounts === true)?.name,
  };
}

/** What the pages tell beforehand; the authenticator itself decides what is good enough. */
function minimumPasswordLength({ authenticators, pluginSections }: Config): number {
  const own = authenticators.find((entry) => entry.class === 'password')?.options;
  const section = pluginSections['PasswordAuthenticator'] as Record<string, unknown> | undefined;
  const configured = own?.['min_length'] ?? section?.['min_length'];
  return typeof configured === 'number' ? configured : 12;
}
