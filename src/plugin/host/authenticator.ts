import type { z } from 'zod';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { LocalizedText } from '../../platform/texts/text.ts';

/**
 * The version of the plugin contract that a plugin is written for; 1 when it says nothing. A version
 * is a whole number, and a new one comes when a plugin that was right no longer would be.
 */
export type ContractVersion = 1;

/** What every plugin says of itself, whatever its kind. */
export interface PluginDeclaration<Options> {
  readonly contract?: ContractVersion;
  /** The name by which the configuration chooses it: `Hub.authenticator_class`, `Spawner.class`. */
  readonly name: string;
  /** Section of the configuration with the plugin's own options, such as `PasswordAuthenticator`. */
  readonly section: string;
  /** Strict schema of the options, made with `zod`; those named in `secretOptions` arrive as text. */
  readonly optionsSchema: z.ZodType<Options>;
  /** Dotted names of options that may be given as `{"env": …}` or `{"file": …}`. */
  readonly secretOptions?: readonly string[];
  /**
   * Finds what a schema cannot see, such as options that contradict each other or the way the hub
   * is reached. Opens nothing; runs before `create` and in `hub check`.
   */
  findProblems?(options: Options, surroundings: PluginSurroundings): readonly OptionProblem[];
}

/**
 * The contract of an authenticator plugin, the default export of a file in `plugins/`.
 *
 * A plugin is a value, not a base class. It knows no web framework and no database: it returns what
 * should happen, and the hub does it. `Kind` is the kind of login it creates: `FormAuthenticator`,
 * `ExternalAuthenticator` or `RequestAuthenticator`.
 */
export interface AuthenticatorPlugin<Options = unknown, Kind extends Authenticator = Authenticator>
  extends PluginDeclaration<Options> {
  readonly kind: 'authenticator';
  /**
   * Puts the authenticator together; throws when that is impossible. `hub check`, every start and
   * every reload also create one for trial, with a host that keeps nothing, so this may read files,
   * but connects to nothing, starts nothing and writes nothing: that is for `open`.
   */
  create(options: Options, host: AuthenticatorHost): Kind | Promise<Kind>;
}

/** What is wrong with the options of a plugin. */
export interface OptionProblem {
  /** Dotted name of the option; empty for all of them together. */
  readonly option: string;
  readonly message: string;
}

/** What a plugin may know of the hub before it is created. */
export interface PluginSurroundings {
  /** Name of this entry in the configuration, unique among the configured authenticators. */
  readonly name: string;
  /** Public base URL of the hub, ends in a slash. */
  readonly publicUrl: string;
  /** Whether the public gateway listens on a loopback address only. */
  readonly isLoopbackOnly: boolean;
  /**
   * An address of this machine, or a socket open to all, from which the hub believes what a proxy says, so
   * that each program on the machine could say it; undefined when only others are trusted.
   */
  readonly trustedLocalAddress: string | undefined;
  /** Whether visitors are asked for certificates (`Hub.client_authorities` at an https:// `Hub.bind_url`). */
  readonly asksForCertificates: boolean;
  /** Name of the hub, shown on every page. */
  readonly hubTitle: string;
  /** Folder of the configuration file, by which relative paths in options go. */
  readonly directory: string;
}

/** What the hub lends to an authenticator. */
export interface AuthenticatorHost extends PluginSurroundings {
  /**
   * Where an external provider sends the browser back: `<public_url>hub/oauth_callback`, and `/<name>` after it with
   * `Authenticator.separate_callbacks`.
   */
  readonly callbackUrl: string;
  /** The options every authenticator shares (`Authenticator` in the configuration). */
  readonly shared: { readonly enableAuthState: boolean; readonly manageGroups: boolean };
  readonly log: PluginLog;
  /** Passwords of the hub's own accounts. */
  readonly credentials: CredentialStore;
  readonly passwordHasher: PasswordHasher;
  /** Small values that outlive a restart, for example a dynamic client registration. */
  readonly settings: SettingStore;
  /** The hub's name as client of external providers: `hub-client-<uuid>`, made once and kept. */
  defaultClientId(): Promise<string>;
}

export interface CredentialStore {
  /** Hash of a user's password, or undefined when there is none. */
  findPasswordHash(userName: string): Promise<PasswordCredential | undefined>;
  /** Stores a new hash for an existing user and clears `mustChange`. */
  setPasswordHash(userName: string, passwordHash: string): Promise<void>;
  /**
   * Stores another hash of the password that a user has, at another cost, in place of `replacing`; nothing happens
   * when the password was changed meanwhile.
   */
  rehashPassword(
    userName: string,
    passwordHash: string,
    rehash: { readonly replacing: string },
  ): Promise<void>;
}

export interface PasswordCredential {
  readonly passwordHash: string;
  readonly mustChange: boolean;
}

/** Hashes passwords slowly and with salt, so that a stolen database does not give them away. */
export interface PasswordHasher {
  hash(password: string): Promise<string>;
  /**
   * Compares a password with a stored hash. Without a hash (there is no such user) it takes as long
   * as with one and never matches.
   */
  verify(password: string, passwordHash: string | undefined): Promise<PasswordVerification>;
}

export interface PasswordVerification {
  readonly matches: boolean;
  /** The hash was made with weaker parameters than today's: store a new one. */
  readonly needsRehash: boolean;
}

export interface SettingStore {
  find(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
}

/** A created authenticator, one type for each kind of login. Hooks it has no use for are left out. */
export type Authenticator = FormAuthenticator | ExternalAuthenticator | RequestAuthenticator;

/** A login by fields that the hub shows on its own page, such as a password. */
export interface FormAuthenticator extends AuthenticatorHooks {
  readonly login: FormMethod;
  /** Checks a submitted form. */
  authenticate(form: LoginForm, request: LoginRequest): Promise<AuthenticationResult>;
  /**
   * Says why a new password of an own account is not good enough, in one sentence for the person who
   * chose it, for all or by language; undefined when it is. Only for authenticators whose accounts have passwords in the hub.
   */
  passwordProblem?(
    password: string,
    account: { readonly userName: string },
  ): LocalizedText | undefined;
  /** Fewest characters of such a password: pages tell it beforehand, `passwordProblem` decides. */
  readonly minimumPasswordLength?: number;
}

/** A login at a provider elsewhere, to which the browser goes and from which it comes back. */
export interface ExternalAuthenticator extends AuthenticatorHooks {
  readonly login: ExternalMethod;
  /** Says where the browser goes. Throws when the provider cannot be reached. */
  beginLogin(request: LoginRequest, options?: ExternalLoginOptions): Promise<ExternalLoginStart>;
  /** Completes the login with what the browser brought back to the callback. */
  completeLogin(callback: ExternalCallback, request: LoginRequest): Promise<AuthenticationResult>;
  /** Verifies a logout token of the provider (OpenID Connect Back-Channel Logout 1.0 §2.6). */
  verifyLogoutToken?(logoutToken: string, options: CallOptions): Promise<LogoutTokenResult>;
}

/** A login that each request carries itself, such as a header set by a proxy in front of the hub. */
export interface RequestAuthenticator extends AuthenticatorHooks {
  readonly login: RequestMethod;
  /** Identifies a request; `refused` with `credentials` when it names no user. */
  identify(request: LoginRequest): Promise<AuthenticationResult>;
}

/** What an authenticator of any kind may do besides. */
export interface AuthenticatorHooks {
  /**
   * True when accounts are made by an administrator in the hub itself, as with passwords: an account
   * that exists may then log in without standing on an allow list.
   */
  readonly ownsAccounts?: boolean;
  /**
   * Runs once, before the first login: the place to open connections and to start work of one's own.
   * When it throws, the hub does not start, and a reload keeps the former configuration. A reload
   * opens the new authenticators before it closes the former ones.
   */
  open?(): void | Promise<void>;
  /** Asks the provider whether the user is still who they were. */
  refreshUser?(user: AuthenticatedUser, options: CallOptions): Promise<RefreshResult>;
  /** Where the browser goes after logout to end the provider's session too. */
  logoutUrl?(login: {
    readonly idToken?: string;
    readonly returnTo: string;
  }): Promise<string | undefined>;
  /** Runs before a user's server starts; may add to its environment or refuse by throwing. */
  beforeSpawn?(
    user: AuthenticatedUser,
    server: SpawnInfo,
    options: CallOptions,
  ): Promise<SpawnAdditions>;
  /** Runs after a user's server stopped. */
  afterStop?(user: AuthenticatedUser, server: SpawnInfo): Promise<void>;
  /** Runs when an administrator deletes the user. */
  deleteUser?(userName: string): Promise<void>;
  /** Whether a provider can be reached, for the login page and health. */
  status?(): ProviderStatus;
  /**
   * Asks the provider for something that changes nothing there, for `hub doctor`; called without `open`.
   * Throws when it does not answer as it should.
   */
  reach?(options: CallOptions): Promise<void>;
  /** Closes what `open` opened; also called without `open`, after a trial, and more than once. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** How the login page offers an authenticator. */
export type LoginMethod = FormMethod | ExternalMethod | RequestMethod;

export interface FormMethod {
  readonly kind: 'form';
  /** One for all readers, or one for each language by BCP 47 tag. */
  readonly label: LocalizedText;
  /** One of them is called `username`: by it failed attempts are counted. */
  readonly fields: readonly LoginField[];
}

export interface ExternalMethod {
  readonly kind: 'external';
  /** One for all readers, or one for each language by BCP 47 tag. */
  readonly label: LocalizedText;
  readonly icon?: LoginIcon;
}

/** Not shown on the login page: requests without a session are identified before it. */
export interface RequestMethod {
  readonly kind: 'request';
  /** One for all readers, or one for each language by BCP 47 tag. */
  readonly label: LocalizedText;
}

/** Name of a built-in icon of the login page; anything else shows a neutral one. */
export type LoginIcon =
  | 'github'
  | 'gitlab'
  | 'google'
  | 'microsoft'
  | 'keycloak'
  | 'okta'
  | 'auth0'
  | 'generic';

export interface LoginField {
  readonly name: string;
  /** One for all readers, or one for each language by BCP 47 tag. */
  readonly label: LocalizedText;
  readonly type: 'text' | 'password' | 'one-time-code';
  /** Value of the HTML `autocomplete` attribute. */
  readonly autocomplete: string;
  readonly optional?: boolean;
}

export type LoginForm = ReadonlyMap<string, string>;

export interface LoginRequest extends CallOptions {
  /** Address of the client, after trusted proxies. */
  readonly address: string;
  /** Address of the peer that connected, before any header is believed. */
  readonly peerAddress: string;
  readonly isTrustedProxy: boolean;
  readonly userAgent: string;
  /**
   * DER in base64 of the certificate that the client has shown to the hub itself or to a gateway process of it, of an
   * authority in `Hub.client_authorities`; never what a header says.
   */
  readonly clientCertificate?: string | undefined;
  /** Lower-case header names. The values of a header that was sent several times stand on lines of their own. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
}

export interface ExternalLoginOptions {
  /**
   * Set when a user who is logged in is to show again who they are: the provider should ask for their
   * credentials, even if it knows the browser, as with `prompt=login` (OpenID Connect Core 1.0 §3.1.2.1).
   */
  readonly asksAgain: boolean;
}

export interface ExternalLoginStart {
  /** Where the browser goes: the provider's authorization endpoint with all parameters. */
  readonly location: string;
  /** The `state` parameter in that location; the hub stores `pending` under it, bound to the browser. */
  readonly state: string;
  /** What `completeLogin` needs again: PKCE verifier, nonce. JSON. */
  readonly pending: Readonly<Record<string, string>>;
}

export interface ExternalCallback {
  /** The whole callback URL as the browser requested it, built from the public URL. */
  readonly url: URL;
  readonly state: string;
  readonly pending: Readonly<Record<string, string>>;
}

/** Expected outcomes are values; a thrown error means the provider or the network failed. */
export type AuthenticationResult =
  | { readonly outcome: 'authenticated'; readonly user: AuthenticatedUser }
  | {
      readonly outcome: 'refused';
      readonly reason: RefusalReason;
      readonly message?: string;
      /** How long the answer to a form is held back, a minute at most; other logins need not wait for it. */
      readonly delayMs?: number;
    };

/** Why a login was refused. `credentials` counts towards the lock-out. */
export type RefusalReason =
  | 'credentials'
  | 'not_allowed'
  | 'provider'
  | 'cancelled'
  | 'invalid_response';

/** What an authenticator says of a user beside the name; the hub cuts what is too long and leaves out what is no use. */
export interface ClaimedInfo {
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  /** Whether the provider vouches that the address is the user's; false when left out. */
  readonly isEmailVerified?: boolean | undefined;
  /** An https URL. */
  readonly pictureUrl?: string | undefined;
}

export interface AuthenticatedUser {
  /** Before normalisation, `username_map` and `username_pattern`. */
  readonly name: string;
  /** Issuer of the identity; the authenticator's name when there is no other. */
  readonly issuer?: string;
  /** Stable id of the person at the issuer; the name when there is no other. */
  readonly subject?: string;
  /** Text by which the person recognises the identity, for example an e-mail address. */
  readonly display?: string;
  /** Display name, e-mail address and picture; undefined leaves what is known, and `{}` empties it. */
  readonly info?: ClaimedInfo;
  /** Undefined leaves the administrator flag as it is. */
  readonly admin?: boolean;
  /**
   * The plugin's own allow rules (groups, domains, organisations): `true` admits, `false` refuses,
   * undefined leaves the decision to `allowed_users` and `allow_all`.
   */
  readonly allowed?: boolean;
  /** All groups of the user at the provider; synchronised when `manage_groups` is on. */
  readonly groups?: readonly string[];
  /** All roles of the user at the provider; synchronised when `manage_roles` is on. */
  readonly roles?: readonly string[];
  /** Kept encrypted when needed for refresh or when `enable_auth_state` is on; given back later. */
  readonly authState?: Readonly<Record<string, unknown>>;
  /** `sid` of the provider's session. */
  readonly upstreamSessionId?: string;
  readonly idToken?: string;
  /** Whether more than a password was asked for, such as by an `amr` of `mfa` (RFC 8176); false when left out. */
  readonly isMultiFactor?: boolean;
  /** The login succeeded but the person must choose a new password before anything else. */
  readonly mustChangePassword?: boolean;
}

export type RefreshResult =
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'updated'; readonly user: AuthenticatedUser }
  /** The person must log in again; session, tokens and connections end. */
  | { readonly outcome: 'login_required'; readonly message?: string }
  /** The provider cannot be reached; the login survives for `refresh_grace`. */
  | { readonly outcome: 'unavailable'; readonly message?: string };

export type LogoutTokenResult =
  | {
      readonly outcome: 'verified';
      readonly issuer: string;
      readonly subject?: string;
      readonly upstreamSessionId?: string;
      /** `jti`; the hub refuses it a second time until `expiresAt`. */
      readonly tokenId: string;
      readonly expiresAt: Date;
    }
  | { readonly outcome: 'invalid'; readonly message: string };

export interface SpawnInfo {
  readonly userName: string;
  readonly serverName: string;
}

export interface SpawnAdditions {
  readonly environment?: Readonly<Record<string, string>>;
}

export type ProviderStatus =
  | { readonly state: 'ready' }
  | { readonly state: 'unavailable'; readonly message: string };
