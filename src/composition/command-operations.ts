import { resolve } from 'node:path';
import { pino } from 'pino';
import { createNoticeStore } from '../cluster/notices/notice-store.ts';
import type { OpenOperations } from '../entrances/cli/cli-io.ts';
import { createPageUrls } from '../entrances/pages/page-urls.ts';
import { createAccounts } from '../identity/accounts/accounts.ts';
import { createActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import { createConfiguredRights } from '../identity/accounts/configured-rights.ts';
import { createGroupMembers } from '../identity/accounts/group-members.ts';
import { createInvitations } from '../identity/accounts/invitations.ts';
import { createRoleAdministration } from '../identity/accounts/role-administration.ts';
import { createSetUpLink } from '../identity/accounts/set-up-link.ts';
import { createUserImports } from '../identity/accounts/user-imports.ts';
import { createUserProfiles } from '../identity/accounts/user-profiles.ts';
import { createAccountBinding } from '../identity/authentication/account-binding.ts';
import { createAccountPasswords } from '../identity/authentication/account-passwords.ts';
import { createAuthenticators } from '../identity/authentication/create-authenticators.ts';
import {
  createLockouts,
  createLoginThrottles,
  type Lockouts,
} from '../identity/authentication/login-throttle.ts';
import { createPasswordHasher } from '../identity/authentication/password-hash.ts';
import { createSealedSettings } from '../identity/authentication/sealed-settings.ts';
import { createUserNameRules } from '../identity/authentication/user-name-rules.ts';
import { createSigningKeyStore } from '../identity/oauth/keys/signing-key-store.ts';
import { createSigningKeys, type SigningKeys } from '../identity/oauth/keys/signing-keys.ts';
import { createTokenIssuer } from '../identity/oauth/tokens/token-issuer.ts';
import { createAuthorizer } from '../identity/rbac/authorizer.ts';
import { createScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import type { User } from '../identity/users/user-store.ts';
import type { CommandDeps } from '../operations/operations.ts';
import { createPerform } from '../operations/perform.ts';
import { createCommandEntrance } from '../operations/perform-command.ts';
import { loadCookieSecrets } from '../platform/config/cookie-secret.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { HubError } from '../platform/errors.ts';
import { hubCommand } from '../platform/files/program-folder.ts';
import { openKeyv } from '../platform/store/keyv.ts';
import type { SettingStore } from '../plugin/host/authenticator.ts';
import type { PreparedAuthenticator } from '../plugin/host/create-plugins.ts';
import { createServerDeletion } from '../workloads/servers/server-deletion.ts';
import { createBudgets } from '../workloads/usage/budgets.ts';
import { createPlainStores, keepHubId } from './stores.ts';

/**
 * Opens what commands work with while no hub runs. Plugins are started where a user is deleted, as their providers and
 * engines need not be there for anything else.
 */
export const openOperations: OpenOperations = async ({ config, plugins }, database) => {
  const opened = new AsyncDisposableStack();
  await using unlessComplete = new AsyncDisposableStack();
  unlessComplete.use(opened);
  const { Hub, Authenticator } = config;
  const directory = resolve(config.directory);
  const log = pino({ level: 'silent' });
  const stores = createPlainStores(database);
  const { users, accessTokens, credentials, settings } = stores;
  const catalogue = createScopeCatalogue(Hub.custom_scopes);
  const authorizer = createAuthorizer({
    ...stores,
    catalogue,
    services: () => Hub.services,
    database,
    log,
  });
  const configuredRights = createConfiguredRights(config, () => Hub.services);
  const acting = createActingOnUsers({ authorizer, roles: stores.roles, configuredRights });
  const passwordHasher = createPasswordHasher();

  async function startAuthenticators(
    prepared: readonly PreparedAuthenticator[],
    settingsOf: (name: string) => SettingStore,
  ) {
    const deps = { config: Authenticator, credentials, settings, settingsOf, passwordHasher, log };
    return opened.use(await createAuthenticators(prepared, deps));
  }

  async function endAllOfUser(userId: string): Promise<number> {
    const sessions = await stores.loginSessions.listOfUser(userId);
    for (const { sessionId } of sessions) await stores.loginSessions.end(sessionId);
    return sessions.length;
  }

  /** No other process stops them in its place. */
  async function requireStopped({ name }: User): Promise<void> {
    const servers = await stores.serverStore.listOfUser(name);
    if (servers.every(({ state }) => state === 'stopped')) return;
    throw new HubError('conflict', `A server of ${name} is running.`, {
      hint: `Start the hub first, which can stop it: ${hubCommand('start')}`,
    });
  }

  let keyv: ReturnType<typeof openKeyv> | undefined;
  async function keySpaces() {
    keyv ??= openKeyv({ url: Hub.keyv_url, database, directory, log }).then((each) =>
      opened.use(each),
    );
    return keyv;
  }

  async function openLockouts(): Promise<Lockouts> {
    const options = { keyv: await keySpaces(), now: database.now };
    const throttles = createLoginThrottles(Authenticator, options);
    return createLockouts(Object.values(throttles), database.audit);
  }

  async function openSigningKeys(): Promise<SigningKeys> {
    const file = resolve(directory, Hub.cookie_secret_file);
    const secrets = await loadCookieSecrets({ configured: Hub.cookie_secret, file });
    const sealer = createSealer(secrets, 'signing-key');
    const store = createSigningKeyStore(database, { sealer });
    return createSigningKeys({ store, database, days: Hub.signing_key_days, log });
  }

  const userNames = createUserNameRules(Authenticator);
  const binding = createAccountBinding(config);
  const authenticators = await startAuthenticators(
    plugins.authenticators.filter(({ plugin }) => plugin.name === 'password'),
    () => settings,
  );
  const passwords = createAccountPasswords({
    authenticators,
    credentials,
    passwordHasher,
    countApiTokens: (userId) => accessTokens.countOfUser(userId),
    endLoginsOf: endAllOfUser,
  });
  const accounts = createAccounts({
    ...stores,
    userNames,
    binding,
    configuredRights,
    acting,
    logins: { endAllOfUser },
    async withoutServersOf(user, work) {
      await requireStopped(user);
      return work();
    },
    async deleteServersOf(user) {
      const { serverStore, systemAccounts, userVolumes } = stores;
      const hubId = await keepHubId(settings);
      const { startSpawners } = await import('./servers.ts');
      const spawner = await startSpawners({ plugins, config, hubId, serverStore, log });
      opened.defer(async () => spawner[Symbol.asyncDispose]?.());
      await createServerDeletion({ spawner, serverStore, systemAccounts, userVolumes }).ofUser(
        user,
      );
    },
    async onDelete(userName) {
      const file = resolve(directory, Hub.cookie_secret_file);
      const secrets = await loadCookieSecrets({ configured: Hub.cookie_secret, file });
      const sealer = createSealer(secrets, 'plugin-settings');
      const { list } = await startAuthenticators(plugins.authenticators, (name) =>
        createSealedSettings(name, { settings, sealer }),
      );
      for (const { authenticator } of list) await authenticator.deleteUser?.(userName);
    },
  });
  const groupMembers = createGroupMembers({ ...stores, acting });
  const deps: CommandDeps = {
    ...stores,
    now: database.now,
    database,
    currency: config.Spawner.prices.currency,
    budgets: createBudgets({ ...stores, database, config }),
    accounts,
    groupMembers,
    userImports: createUserImports({
      ...stores,
      names: userNames,
      accounts,
      groupMembers,
      acting,
      addedUsers: {
        get: async (id) => (await keySpaces()).space<string>('added-users').get(id),
        set: async (...entry) => (await keySpaces()).space<string>('added-users').set(...entry),
      },
      roleAdministration: createRoleAdministration({
        ...stores,
        acting,
        catalogue,
        serviceNames: () => Hub.services.map(({ name }) => name),
        configured: Hub.load_roles,
        managesRoles: Authenticator.manage_roles,
      }),
      userProfiles: createUserProfiles({
        ...stores,
        authenticators,
        acting,
        // Of those who are new.
        identities: { listForUser: async () => [] },
        pictureOrigins: Hub.picture_origins,
      }),
    }),
    invitations: createInvitations({
      ...stores,
      passwords,
      acting,
      pageUrl: new URL(createPageUrls(config.basePath).invitation, config.publicUrl).href,
      now: database.now,
    }),
    acting,
    binding,
    userNames,
    passwords,
    setUpLink: createSetUpLink({ ...config, settings, users, credentials }),
    tokenIssuer: createTokenIssuer({ now: database.now, accessTokens, authorizer, settings: Hub }),
    authorizer,
    notices: createNoticeStore(database),
    signingKeys: {
      list: async () => (await openSigningKeys()).list(),
      rotate: async () => (await openSigningKeys()).rotate(),
      revoke: async (id) => (await openSigningKeys()).revoke(id),
    },
    lockouts: {
      list: async () => (await openLockouts()).list(),
      lift: async (subject) => (await openLockouts()).lift(subject),
    },
  };
  const perform = createPerform(deps, { authorizer, users, acting, log });
  const { audit } = database;
  const call = createCommandEntrance({ perform, catalogue, audit, isHub: false });
  unlessComplete.move();
  return { call, [Symbol.asyncDispose]: () => opened.disposeAsync() };
};
