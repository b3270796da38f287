import { createAccounts } from '../identity/accounts/accounts.ts';
import { type ActingOnUsers, createActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import { createAuthStates } from '../identity/accounts/auth-states.ts';
import { type BatchReport, createBatches } from '../identity/accounts/batches.ts';
import {
  type ConfiguredRights,
  createConfiguredRights,
} from '../identity/accounts/configured-rights.ts';
import { createFirstAdministrator } from '../identity/accounts/first-administrator.ts';
import { createFirstRun } from '../identity/accounts/first-run.ts';
import { createGroupMembers } from '../identity/accounts/group-members.ts';
import { createIdentityLinks } from '../identity/accounts/identity-links.ts';
import { createInvitations } from '../identity/accounts/invitations.ts';
import { createPartialLogins, type PartialLogin } from '../identity/accounts/partial-logins.ts';
import { createPasskeyLogin } from '../identity/accounts/passkey-login.ts';
import { createPasskeys } from '../identity/accounts/passkeys.ts';
import { createPasswordCallers } from '../identity/accounts/password-callers.ts';
import { createRecentLogin } from '../identity/accounts/recent-login.ts';
import { createRoleAdministration } from '../identity/accounts/role-administration.ts';
import { createSecondFactorRule } from '../identity/accounts/second-factor-rule.ts';
import { createSecondFactors } from '../identity/accounts/second-factors.ts';
import { createSetUpLink } from '../identity/accounts/set-up-link.ts';
import { createUserImports } from '../identity/accounts/user-imports.ts';
import { createUserProfiles } from '../identity/accounts/user-profiles.ts';
import {
  type AccountPasswords,
  createAccountPasswords,
} from '../identity/authentication/account-passwords.ts';
import { accountOwnerOf } from '../identity/authentication/create-authenticators.ts';
import { createLockouts } from '../identity/authentication/login-throttle.ts';
import { createFailureLimit, type FailureWindow } from '../identity/oauth/clients/failure-limit.ts';
import { createSharePresenter } from '../operations/share-models.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createServiceAdministration } from '../workloads/services/service-administration.ts';
import { gatherServiceFacts, hubUrlsOf } from '../workloads/services/service-facts.ts';
import { createSharing } from '../workloads/sharing/sharing.ts';
import { grow } from './grow.ts';
import type { Served } from './traffic.ts';

/** The record with users' accounts, and the sharing of their servers. */
export type Accounted = Awaited<ReturnType<typeof openAccounts>>;

export const openAccounts = (served: Served) =>
  grow(served)
    .with((hub) => ({
      configuredRights: createConfiguredRights(hub.config, hub.registry.services),
      setUpLink: createSetUpLink(hub),
      firstRun: createFirstRun(hub.settings),
      secondFactorRule: createSecondFactorRule({ ...hub, settings: hub.config.Authenticator }),
      lockouts: createLockouts(Object.values(hub.throttles), hub.audit),
      identityLinks: createIdentityLinks(hub),
      batches: hub.disposables.use(
        createBatches({ ...hub, reports: hub.keyv.space<BatchReport>('batches') }),
      ),
      passwords: createAccountPasswords({
        ...hub,
        countApiTokens: (userId) => hub.accessTokens.countOfUser(userId),
        endLoginsOf: (userId, options) => hub.logins.endAllOfUser(userId, options),
      }),
    }))
    .with((hub) => ({
      acting: createActingOnUsers(hub),
      firstAdministrator: createFirstAdministrator(hub),
    }))
    .with(openSecondFactors)
    .with((hub) => ({
      passkeyLogin: createPasskeyLogin(hub),
      partialLogins: createPartialLogins({
        ...hub,
        records: hub.keyv.space<PartialLogin>('login-steps'),
        accountOwner: () => accountOwnerOf(hub.authenticators)?.name,
      }),
      recentLogin: createRecentLogin({
        ...hub,
        maxAgeSeconds: hub.config.Authenticator.recent_login_seconds,
      }),
    }))
    .with((hub) => ({ passwordCallers: createPasswordCallers(hub) }))
    .with(openAdministration)
    .with((hub) => ({
      userImports: createUserImports({
        ...hub,
        names: hub.userNames,
        addedUsers: hub.keyv.space<string>('added-users'),
      }),
    }))
    .with(openSharing).grown;

function openSecondFactors(
  hub: Served & { readonly secondFactorRule: ReturnType<typeof createSecondFactorRule> },
) {
  const { keyv, secrets } = hub;
  const throttle = hub.throttles.secondFactor;
  return {
    secondFactors: createSecondFactors({
      ...hub,
      throttle,
      sealer: createSealer(secrets, 'second-factor-set-up'),
    }),
    passkeys: createPasskeys({
      ...hub,
      used: keyv.space('passkey-challenges'),
      sealer: createSealer(secrets, 'passkey'),
      throttle,
    }),
  };
}

/** What is done about the accounts of others. */
function openAdministration(
  hub: Served & {
    readonly acting: ActingOnUsers;
    readonly configuredRights: ConfiguredRights;
    readonly passwords: AccountPasswords;
  },
) {
  const { config, acting, authenticators, authorizer, registry, servers } = hub;
  return {
    accounts: createAccounts({
      ...hub,
      withoutServersOf: (user, work) => servers.withoutServersOf(user, work),
      deleteServersOf: (user) => servers.deleteAllOf(user),
      async onDelete(userName) {
        for (const { authenticator } of authenticators.list)
          await authenticator.deleteUser?.(userName);
      },
    }),
    invitations: createInvitations({
      ...hub,
      pageUrl: new URL(hub.urls.invitation, config.publicUrl).href,
    }),
    userProfiles: createUserProfiles({
      ...hub,
      pictureOrigins: config.Hub.picture_origins,
    }),
    roleAdministration: createRoleAdministration({
      ...hub,
      configured: config.Hub.load_roles,
      managesRoles: config.Authenticator.manage_roles,
    }),
    serviceAdministration: createServiceAdministration({
      store: hub.runtimeServiceStore,
      configured: registry.configs,
      refresh: hub.runtimeServices.refresh,
      gatherFacts: (service) => gatherServiceFacts([service], config.directory),
      directory: config.directory,
      hubUrls: hubUrlsOf(config),
      allowsManaged: config.Hub.allow_managed_services_at_runtime,
      catalogue: hub.catalogue,
      excessScopes: acting.excessScopes,
      requireMayOpenTo: acting.requireMayOpenTo,
      scopesOfService: (name) => authorizer.scopesOfOwner({ kind: 'service', name }),
    }),
    groupMembers: createGroupMembers(hub),
    authStates: createAuthStates({
      ...hub,
      keepsAuthState: config.Authenticator.enable_auth_state,
    }),
  };
}

function openSharing(hub: Served & { readonly acting: ActingOnUsers }) {
  return {
    sharing: createSharing({
      ...hub,
      failures: createFailureLimit({
        counts: hub.keyv.space<FailureWindow>('share-code-failures'),
        now: hub.now,
      }),
    }),
    presentShares: createSharePresenter({
      prefixOf: hub.servers.prefixOf,
      origins: hub.origins,
      acceptUrl: hub.urls.acceptShare,
    }),
  };
}
