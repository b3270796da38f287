import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { createInstanceStore } from '../cluster/instances/instance-store.ts';
import { createNoticeStore } from '../cluster/notices/notice-store.ts';
import { createAccountStore } from '../identity/authentication/account-store.ts';
import { createSigningKeyStore } from '../identity/oauth/keys/signing-key-store.ts';
import { createClientLoginStore } from '../identity/oauth/logout/client-login-store.ts';
import { createAccessTokenStore } from '../identity/oauth/tokens/access-token-store.ts';
import { createAuthorizationCodeStore } from '../identity/oauth/tokens/authorization-code-store.ts';
import { createImportedTokenStore } from '../identity/oauth/tokens/imported-token-store.ts';
import { createRefreshTokenStore } from '../identity/oauth/tokens/refresh-token-store.ts';
import { createRoleChangeStore } from '../identity/rbac/role-change-store.ts';
import { createRoleStore } from '../identity/rbac/role-store.ts';
import { createLoginSessionStore } from '../identity/sessions/login-session-store.ts';
import { createGroupPages } from '../identity/users/group-pages-store.ts';
import { createGroupStore } from '../identity/users/group-store.ts';
import { createIdentityStore } from '../identity/users/identity-store.ts';
import { createInvitationStore } from '../identity/users/invitation-store.ts';
import { createPasskeyStore } from '../identity/users/passkey-store.ts';
import { createPasswordCredentialStore } from '../identity/users/password-credential-store.ts';
import { createRecoveryCodeStore } from '../identity/users/recovery-code-store.ts';
import { createSecondFactorStore } from '../identity/users/second-factor-store.ts';
import { createSystemAccountStore } from '../identity/users/system-account-store.ts';
import { createUserInfoStore } from '../identity/users/user-info-store.ts';
import { createUserStore } from '../identity/users/user-store.ts';
import { createUserVolumeStore } from '../identity/users/user-volume-store.ts';
import type { Secret } from '../platform/config/secret.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createAuditStore } from '../platform/store/audit-store.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import { createSettingStore, type SettingStore } from '../platform/store/setting-store.ts';
import { createHomeSpaceStore } from '../workloads/servers/home-space-store.ts';
import { createServerListStore } from '../workloads/servers/server-list-store.ts';
import { createServerStore } from '../workloads/servers/server-store.ts';
import { createStartTimes } from '../workloads/servers/start-times-store.ts';
import { createFavouriteStore } from '../workloads/services/favourite-store.ts';
import { createRuntimeServiceStore } from '../workloads/services/runtime-service-store.ts';
import { createShareCodeStore } from '../workloads/sharing/share-code-store.ts';
import { createShareStore } from '../workloads/sharing/share-store.ts';
import { createBudgetStore } from '../workloads/usage/budget-store.ts';
import { createUsageStore } from '../workloads/usage/usage-store.ts';

/** Everything the hub keeps, over one database. */
export type Stores = ReturnType<typeof createStores>;

export function createStores(database: HubDatabase, secrets: readonly Secret[], log: Logger) {
  return {
    ...createPlainStores(database),
    identities: createIdentityStore(database, { sealer: createSealer(secrets, 'auth-state') }),
    secondFactorStore: createSecondFactorStore(database, {
      sealer: createSealer(secrets, 'second-factor'),
    }),
    signingKeyStore: createSigningKeyStore(database, {
      sealer: createSealer(secrets, 'signing-key'),
    }),
    runtimeServiceStore: createRuntimeServiceStore(database, {
      sealer: createSealer(secrets, 'service-environment'),
      log,
    }),
  };
}

/** Tells the processes of one hub from those of others; of the database, so it outlives a restart. */
export const keepHubId = ({ keep }: Pick<SettingStore, 'keep'>): Promise<string> =>
  keep('hub_id', randomUUID());

/** What the hub keeps without encrypting it, so that no key is needed. */
export function createPlainStores(database: HubDatabase) {
  return {
    users: createUserStore(database),
    userInfo: createUserInfoStore(database),
    systemAccounts: createSystemAccountStore(database),
    userVolumes: createUserVolumeStore(database),
    groups: createGroupStore(database),
    groupPages: createGroupPages(database),
    credentials: createPasswordCredentialStore(database),
    invitationStore: createInvitationStore(database),
    passkeyStore: createPasskeyStore(database),
    recoveryCodes: createRecoveryCodeStore(database),
    accountStore: createAccountStore(database),
    instanceStore: createInstanceStore(database),
    settings: createSettingStore(database),
    notices: createNoticeStore(database),
    auditLog: createAuditStore(database),
    roles: createRoleStore(database),
    roleChanges: createRoleChangeStore(database),
    loginSessions: createLoginSessionStore(database),
    accessTokens: createAccessTokenStore({ database }),
    importedTokens: createImportedTokenStore(database),
    authorizationCodes: createAuthorizationCodeStore({ database }),
    refreshTokens: createRefreshTokenStore({ database }),
    clientLogins: createClientLoginStore(database),
    serverList: createServerListStore(database),
    serverStore: createServerStore(database),
    startTimes: createStartTimes(database),
    usage: createUsageStore(database),
    budgetStore: createBudgetStore(database),
    homeSpaceStore: createHomeSpaceStore(database),
    favourites: createFavouriteStore(database),
    shares: createShareStore(database),
    shareCodes: createShareCodeStore(database),
  };
}
