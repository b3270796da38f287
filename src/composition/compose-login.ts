import { createAccountBinding } from '../identity/authentication/account-binding.ts';
import { createAdmissionRules } from '../identity/authentication/admission-rules.ts';
import { createAuthorizationRequestStates } from '../identity/authentication/authorization-request-states.ts';
import { createAuthenticators } from '../identity/authentication/create-authenticators.ts';
import { createExternalLogins } from '../identity/authentication/external-logins.ts';
import { createIdentityLinking } from '../identity/authentication/identity-linking.ts';
import { createLoginService } from '../identity/authentication/login-service.ts';
import { createLoginThrottles } from '../identity/authentication/login-throttle.ts';
import { type Argon2Cost, createPasswordHasher } from '../identity/authentication/password-hash.ts';
import { createProfileSync } from '../identity/authentication/profile-sync.ts';
import { createReloadableLogin } from '../identity/authentication/reloadable-login.ts';
import { createSealedSettings } from '../identity/authentication/sealed-settings.ts';
import { createUserNameRules } from '../identity/authentication/user-name-rules.ts';
import { createUserRefresh, providerTimeoutMs } from '../identity/authentication/user-refresh.ts';
import type { Config } from '../platform/config/config.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createKeyvMutex } from '../platform/store/keyv-space.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

/** What lets users in. */
export type ComposedLogin = Awaited<ReturnType<typeof composeLogin>>;

export async function composeLogin(
  { config, secrets, database, stores, keyv, log, disposables }: Foundation,
  {
    plugins,
    site,
    passwordCost,
  }: {
    readonly plugins: PreparedPlugins;
    readonly site: Site;
    readonly passwordCost: Argon2Cost | undefined;
  },
) {
  const sealer = createSealer(secrets, 'plugin-settings');
  const passwordHasher = createPasswordHasher(passwordCost);
  const throttles = createLoginThrottles(config.Authenticator, { keyv, now: database.now });
  const throttle = throttles.login;

  const runAlone = createKeyvMutex(keyv.space<string>('refreshes'), {
    lifetimeMs: providerTimeoutMs + 5_000,
  });

  async function createMethods(methods: Config, prepared: PreparedPlugins) {
    const { Authenticator } = methods;
    const binding = createAccountBinding(methods);
    const created = await createAuthenticators(prepared.authenticators, {
      config: Authenticator,
      credentials: stores.credentials,
      settings: stores.settings,
      settingsOf: (name) => createSealedSettings(name, { settings: stores.settings, sealer }),
      passwordHasher,
      log,
    });
    const service = createLoginService({
      config: Authenticator,
      authenticators: created,
      users: stores.users,
      groups: stores.groups,
      userInfo: stores.userInfo,
      identities: stores.identities,
      accounts: stores.accounts,
      credentials: stores.credentials,
      roles: stores.roles,
      binding,
      throttle,
      audit: database.audit,
      log,
    });
    const { identities } = stores;
    const rules = createAdmissionRules(Authenticator);
    const refresh = createUserRefresh({
      now: database.now,
      runAlone,
      config: Authenticator,
      authenticators: created,
      identities,
      rules,
      profiles: createProfileSync({ config: Authenticator, rules, ...stores, log }),
      log,
    });
    return {
      authenticators: created,
      binding,
      names: createUserNameRules(Authenticator),
      loginService: service,
      linkIdentity: createIdentityLinking({ config: Authenticator, identities }),
      refresh,
    };
  }

  const { authenticators, binding, names, loginService, linkIdentity, refresh, reload } =
    disposables.use(await createReloadableLogin(createMethods, { config, plugins }, log));
  return {
    authenticators,
    binding,
    names,
    throttle,
    throttles,
    loginService,
    linkIdentity,
    refresh,
    passwordHasher,
    externalLogins: createExternalLogins({
      authenticators,
      loginService,
      linkIdentity,
      requestStates: createAuthorizationRequestStates({
        sealer: createSealer(secrets, 'authorization-request-state'),
        used: keyv.space<true>('used-login-states'),
        now: database.now,
        path: site.urls.hub,
        isSecure: site.isHttps,
      }),
      publicUrl: config.publicUrl,
      log,
    }),
    reload,
  };
}
