import type { Accounts } from '../accounts/accounts.ts';
import { createFirstAdministrator } from '../accounts/first-administrator.ts';
import { createGroupMembers } from '../accounts/group-members.ts';
import { createIdentityLinks } from '../accounts/identity-links.ts';
import { createInvitations } from '../accounts/invitations.ts';
import { createLockouts } from '../accounts/lockouts.ts';
import { createPartialLogins, type PartialLogin } from '../accounts/partial-logins.ts';
import { createSecondFactors } from '../accounts/second-factors.ts';
import { createSetUpLink } from '../accounts/set-up-link.ts';
import { createAccountPasswords } from '../authentication/account-passwords.ts';
import { accountOwnerOf } from '../authentication/create-authenticators.ts';
import { createLoginThrottle, type ThrottleRecord } from '../authentication/login-throttle.ts';
import type { Config } from '../config/config.ts';
import type { PageUrls } from '../pages/page-urls.ts';
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
  readonly urls: PageUrls;
}) {
  const { config, stores, keyv, login, logins, authority, accounts, urls } = deps;
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
  const secondFactors = createSecondFactors({
    store: stores.secondFactors,
    throttle: secondFactorThrottle,
    hubTitle: config.Hub.title,
  });
  return {
    passwords,
    secondFactors,
    partialLogins: createPartialLogins({
      records: keyv.space<PartialLogin>('login-steps'),
      users: stores.users,
      secondFactors,
      accountOwner: () => accountOwnerOf(authenticators)?.name,
    }),
    invitations: createInvitations({
      store: stores.invitations,
      users: stores.users,
      credentials: stores.credentials,
      passwords,
      requireMayActOn: (caller, user) => accounts.requireMayActOn(caller, user),
      pageUrl: new URL(urls.invitation, config.publicUrl).href,
    }),
    identityLinks: createIdentityLinks({
      identities: stores.identities,
      authenticators,
      credentials: stores.credentials,
      logins,
    }),
    groupMembers: createGroupMembers({ groups: stores.groups, roles: stores.roles, authority }),
    lockouts: createLockouts([login.throttle, secondFactorThrottle]),
    firstAdministrator: createFirstAdministrator({
      link: createSetUpLink({ ...config, ...stores }),
      users: stores.users,
      names: login.names,
      authenticators,
      passwords,
    }),
  };
}
