import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { createAccountStore } from '../authentication/account-store.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createInstanceStore } from '../instances/instance-store.ts';
import { createNoticeStore } from '../notices/notice-store.ts';
import { createAccessTokenStore } from '../oauth/tokens/access-token-store.ts';
import { createAuthorizationCodeStore } from '../oauth/tokens/authorization-code-store.ts';
import { createRoleChangeStore } from '../rbac/role-change-store.ts';
import { createRoleStore } from '../rbac/role-store.ts';
import { createServerStore } from '../servers/server-store.ts';
import { createStartTimes } from '../servers/start-times-store.ts';
import { createRuntimeServiceStore } from '../services/runtime-service-store.ts';
import { createLoginSessionStore } from '../sessions/login-session-store.ts';
import { createShareCodeStore } from '../sharing/share-code-store.ts';
import { createShareStore } from '../sharing/share-store.ts';
import { createAuditStore } from '../store/audit-store.ts';
import type { HubDatabase } from '../store/database.ts';
import { createSettingStore, type SettingStore } from '../store/setting-store.ts';
import { createGroupPages } from '../users/group-pages-store.ts';
import { createGroupStore } from '../users/group-store.ts';
import { createIdentityStore } from '../users/identity-store.ts';
import { createInvitationStore } from '../users/invitation-store.ts';
import { createPasskeyStore } from '../users/passkey-store.ts';
import { createPasswordCredentialStore } from '../users/password-credential-store.ts';
import { createRecoveryCodeStore } from '../users/recovery-code-store.ts';
import { createSecondFactorStore } from '../users/second-factor-store.ts';
import { createSystemAccountStore } from '../users/system-account-store.ts';
import { createUserInfoStore } from '../users/user-info-store.ts';
import { createUserStore } from '../users/user-store.ts';

/** Everything the hub keeps, over one database. */
export type Stores = ReturnType<typeof createStores>;

export function createStores(database: HubDatabase, secrets: readonly Secret[], log: Logger) {
  return {
    ...createPlainStores(database),
    identities: createIdentityStore(database, { sealer: createSealer(secrets, 'auth-state') }),
    secondFactors: createSecondFactorStore(database, {
      sealer: createSealer(secrets, 'second-factor'),
    }),
    runtimeServices: createRuntimeServiceStore(database, {
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
    groups: createGroupStore(database),
    groupPages: createGroupPages(database),
    credentials: createPasswordCredentialStore(database),
    invitations: createInvitationStore(database),
    passkeys: createPasskeyStore(database),
    recoveryCodes: createRecoveryCodeStore(database),
    accounts: createAccountStore(database),
    instances: createInstanceStore(database),
    settings: createSettingStore(database),
    notices: createNoticeStore(database),
    audit: createAuditStore(database),
    roles: createRoleStore(database),
    roleChanges: createRoleChangeStore(database),
    loginSessions: createLoginSessionStore(database),
    accessTokens: createAccessTokenStore({ database }),
    authorizationCodes: createAuthorizationCodeStore({ database }),
    servers: createServerStore(database),
    startTimes: createStartTimes(database),
    shares: createShareStore(database),
    shareCodes: createShareCodeStore(database),
  };
}
