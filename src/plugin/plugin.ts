/**
 * The contract of plugins: types only. A plugin is the default export of a file or folder in the
 * plugins folder. There it imports `zod`, `@hub-gateway/hub/plugin` and `@hub-gateway/hub/client` without installing anything:
 * the hub hands over its own.
 */
export type { PluginLog } from '../platform/logging/plugin-log.ts';
export type {
  AuthenticatedUser,
  AuthenticationResult,
  Authenticator,
  AuthenticatorHooks,
  AuthenticatorHost,
  AuthenticatorPlugin,
  CallOptions,
  ClaimedInfo,
  ContractVersion,
  CredentialStore,
  ExternalAuthenticator,
  ExternalCallback,
  ExternalLoginOptions,
  ExternalLoginStart,
  ExternalMethod,
  FormAuthenticator,
  FormMethod,
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
  RequestAuthenticator,
  RequestMethod,
  SettingStore,
  SpawnAdditions,
  SpawnInfo,
} from './host/authenticator.ts';
export type { Finding } from './host/finding.ts';
export type {
  ChangeableSettings,
  SpawnHook,
  SpawnHookHost,
  SpawnHookPlugin,
  StartChanges,
  StartSettings,
} from './host/spawn-hook.ts';
export type {
  AcceptAddress,
  ReportedAddress,
  ResourceGuarantees,
  ResourceLimits,
  ResumeRequest,
  ServerIdentity,
  SpawnerState,
  SpawnPhase,
  SpawnProgress,
  SpawnRequest,
  StartCallbacks,
  Volume,
} from './host/spawn-request.ts';
export type {
  ExamineOptions,
  OptionsField,
  OptionsForm,
  PollResult,
  ResourceUsage,
  ServerExit,
  SpawnedServer,
  Spawner,
  SpawnerHost,
  SpawnerPlugin,
} from './host/spawner.ts';
