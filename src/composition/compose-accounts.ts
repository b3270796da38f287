import { createAccounts } from '../identity/accounts/accounts.ts';
import { createActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import { type BatchReport, createBatches } from '../identity/accounts/batches.ts';
import { createConfiguredRights } from '../identity/accounts/configured-rights.ts';
import { createFirstAdministrator } from '../identity/accounts/first-administrator.ts';
import { createFirstRun } from '../identity/accounts/first-run.ts';
import { createGroupMembers } from '../identity/accounts/group-members.ts';
import { createIdentityLinks } from '../identity/accounts/identity-links.ts';
import { createInvitations } from '../identity/accounts/invitations.ts';
import { createLockouts } from '../identity/accounts/lockouts.ts';
import { createPartialLogins, type PartialLogin } from '../identity/accounts/partial-logins.ts';
import { createPasskeyLogin } from '../identity/accounts/passkey-login.ts';
import { createPasskeys } from '../identity/accounts/passkeys.ts';
import { createPasswordCallers } from '../identity/accounts/password-callers.ts';
import { createRecentLogin } from '../identity/accounts/recent-login.ts';
import { createRoleAdministration } from '../identity/accounts/role-administration.ts';
import { createSecondFactorRule } from '../identity/accounts/second-factor-rule.ts';
import { createSecondFactors } from '../identity/accounts/second-factors.ts';
import { createSetUpLink } from '../identity/accounts/set-up-link.ts';
import { createUserProfiles } from '../identity/accounts/user-profiles.ts';
import { createAccountPasswords } from '../identity/authentication/account-passwords.ts';
import { accountOwnerOf } from '../identity/authentication/create-authenticators.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createServiceAdministration } from '../workloads/services/service-administration.ts';
import { gatherServiceFacts, hubUrlsOf } from '../workloads/services/service-facts.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';

/** What users' accounts are made of. */
export type ComposedAccounts = ReturnType<typeof composeAccounts>;

export function composeAccounts(
  { config, database, disposables, stores, keyv, log, metrics, secrets }: Foundation,
  deps: {
    readonly site: Site;
    readonly login: Identity;
    readonly logins: LoginSessions;
    readonly authorizer: Authorizer;
    readonly servers: Pick<Working, 'servers'>;
    readonly services: Identity;
  },
) {
  const { site, login, logins, authorizer, servers } = deps;
  const { authenticators } = login;
  const configuredRights = createConfiguredRights(config, deps.services.registry.services);
  const acting = createActingOnUsers({
    authorizer,
    roles: stores.roles,
    configured: configuredRights,
  });
  const accounts = createAccounts({
    users: stores.users,
    systemAccounts: stores.systemAccounts,
    names: login.userNames,
    binding: login.binding,
    configured: configuredRights,
    acting,
    logins,
    withoutServersOf: (user, work) => servers.servers.withoutServersOf(user, work),
    deleteServersOf: (user) => servers.servers.deleteAllOf(user),
    async onDelete(userName) {
      for (const { authenticator } of authenticators.list)
        await authenticator.deleteUser?.(userName);
    },
  });
  const passwords = createAccountPasswords({
    authenticators,
    credentials: stores.credentials,
    passwordHasher: login.passwordHasher,
    countApiTokens: (userId) => stores.accessTokens.countOfUser(userId),
    endLoginsOf: (userId, options) => logins.endAllOfUser(userId, options),
  });
  const now = () => new Date(database.now());
  const secondFactorRule = createSecondFactorRule({ ...stores, settings: config.Authenticator });
  const secondFactors = createSecondFactors({
    now,
    store: stores.secondFactorStore,
    passkeys: stores.passkeyStore,
    recoveryCodes: stores.recoveryCodes,
    throttle: login.throttles.secondFactor,
    rule: secondFactorRule,
    sealer: createSealer(secrets, 'second-factor-set-up'),
    hubTitle: site.titleForAll,
    audit: database.audit,
  });
  const passkeys = createPasskeys({
    store: stores.passkeyStore,
    users: stores.users,
    rule: secondFactorRule,
    used: keyv.space('passkey-challenges'),
    sealer: createSealer(secrets, 'passkey'),
    throttle: login.throttles.secondFactor,
    audit: database.audit,
    publicUrl: config.publicUrl,
    hubTitle: site.titleForAll,
    log,
    now: database.now,
  });
  const partialLogins = createPartialLogins({
    records: keyv.space<PartialLogin>('login-steps'),
    users: stores.users,
    credentials: stores.credentials,
    secondFactors,
    rule: secondFactorRule,
    accountOwner: () => accountOwnerOf(authenticators)?.name,
  });
  const setUpLink = createSetUpLink({ ...config, ...stores });
  const firstRun = createFirstRun(stores.settings);
  return {
    acting,
    batches: disposables.use(
      createBatches({ reports: keyv.space<BatchReport>('batches'), now: database.now, log }),
    ),
    configuredRights,
    setUpLink,
    firstRun,
    accounts,
    passwords,
    secondFactors,
    secondFactorRule,
    passkeys,
    passkeyLogin: createPasskeyLogin({
      passkeys,
      authenticators,
      loginService: login.loginService,
      credentials: stores.credentials,
      log,
    }),
    partialLogins,
    passwordCallers: createPasswordCallers({
      authenticators,
      loginService: login.loginService,
      partialLogins,
      authorizer,
      metrics,
    }),
    recentLogin: createRecentLogin({
      now,
      maxAgeSeconds: config.Authenticator.recent_login_seconds,
      authenticators,
      loginService: login.loginService,
      secondFactors,
      passkeys,
      log,
    }),
    invitations: createInvitations({
      now,
      store: stores.invitationStore,
      users: stores.users,
      credentials: stores.credentials,
      passwords,
      acting,
      pageUrl: new URL(site.urls.invitation, config.publicUrl).href,
    }),
    identityLinks: createIdentityLinks({
      identities: stores.identities,
      authenticators,
      credentials: stores.credentials,
      logins,
    }),
    userProfiles: createUserProfiles({
      store: stores.userInfo,
      identities: stores.identities,
      authenticators,
      acting,
      pictureOrigins: config.Hub.picture_origins,
    }),
    roleAdministration: createRoleAdministration({
      roles: stores.roles,
      changes: stores.roleChanges,
      acting,
      catalogue: authorizer.catalogue,
      serviceNames: () => deps.services.registry.services().map(({ name }) => name),
      configured: config.Hub.load_roles,
      managesRoles: config.Authenticator.manage_roles,
    }),
    serviceAdministration: createServiceAdministration({
      store: stores.runtimeServiceStore,
      configured: deps.services.registry.configs,
      refresh: deps.services.runtimeServices.refresh,
      gatherFacts: (service) => gatherServiceFacts([service], config.directory),
      directory: config.directory,
      hubUrls: hubUrlsOf(config),
      allowsManaged: config.Hub.allow_managed_services_at_runtime,
      catalogue: authorizer.catalogue,
      excessScopes: acting.excessScopes,
      requireMayOpenTo: acting.requireMayOpenTo,
      scopesOfService: (name) => authorizer.scopesOfOwner({ kind: 'service', name }),
    }),
    groupMembers: createGroupMembers({ ...stores, acting }),
    lockouts: createLockouts(Object.values(login.throttles), database.audit),
    firstAdministrator: createFirstAdministrator({
      link: setUpLink,
      users: stores.users,
      names: login.userNames,
      authenticators,
      passwords,
      firstRun,
    }),
  };
}
