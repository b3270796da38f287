/**
 * The contract of plugins: types only. A plugin is the default export of a file or folder in the
 * plugins folder. There it imports `zod`, `hub/plugin` and `hub/client` without installing anything:
 * the hub hands over its own.
 */
export type {
  AuthenticatedUser,
  AuthenticationResult,
  Authenticator,
  AuthenticatorHost,
  AuthenticatorLog,
  AuthenticatorPlugin,
  CallOptions,
  CredentialStore,
  ExternalCallback,
  ExternalLoginStart,
  LoginField,
  LoginForm,
  LoginIcon,
  LoginMethod,
  LoginRequest,
  LogoutTokenResult,
  OptionProblem,
  PasswordCredential,
  PasswordHasher,
  PasswordVerification,
  PluginSurroundings,
  ProviderStatus,
  RefreshResult,
  RefusalReason,
  SettingStore,
  SpawnAdditions,
  SpawnInfo,
} from './plugin-host/authenticator.ts';
export type {
  OptionsField,
  OptionsForm,
  PollResult,
  ResourceUsage,
  ServerExit,
  SpawnedServer,
  Spawner,
  SpawnerHost,
  SpawnerPlugin,
  SpawnerState,
  SpawnProgress,
  SpawnRequest,
} from './plugin-host/spawner.ts';
