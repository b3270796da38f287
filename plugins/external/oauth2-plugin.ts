import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  clockTolerance,
  customFetch,
  fetchProtectedResource,
  None,
} from 'openid-client';
import type { z } from 'zod';
import type {
  AuthenticatorHost,
  AuthenticatorPlugin,
  ExternalAuthenticator,
  LoginIcon,
} from '../../src/plugin/plugin.ts';
import type { ClaimRule } from './access-rules.ts';
import { createBoundedFetch } from './bounded-fetch.ts';
import { type Claims, idAt, isClaims } from './claims.ts';
import { type Connection, createConnector } from './connection.ts';
import { createExternalAuthenticator, type UserQuery } from './external-authenticator.ts';
import { type ExternalOptions, findExternalProblems } from './options.ts';
import { UnexpectedStatus, UntrustedAnswer } from './provider-errors.ts';

/** Where a provider without discovery is. */
export interface OAuth2Endpoints {
  readonly authorizeUrl: string;
  readonly tokenUrl: string;
  readonly userdataUrl: string;
  /** By which the provider names itself (RFC 9207); the origin of `authorizeUrl` when left out. */
  readonly issuer?: string | undefined;
}

/** What makes one OAuth 2 provider different from another. */
export interface OAuth2Preset<Options extends ExternalOptions> {
  readonly name: string;
  readonly section: string;
  readonly label: string;
  readonly icon: LoginIcon;
  readonly optionsSchema: z.ZodType<Options>;
  readonly endpointsOf: (options: Options) => OAuth2Endpoints;
  /** URLs of the configuration to check, by option. */
  readonly urlsOf: (options: Options) => Readonly<Record<string, string | undefined>>;
  /** What makes the provider ask again; plain OAuth 2 has no standard for it. */
  readonly askAgainParameters?: Readonly<Record<string, string>>;
  readonly sendsSecretInHeader: (options: Options) => boolean;
  readonly subjectClaimsOf: (options: Options) => readonly string[];
  readonly defaults: {
    readonly scopesOf: (options: Options) => readonly string[];
    readonly usernameClaim: string;
    readonly groupsClaim?: string;
  };
  readonly grantsOf?: (options: Options) => readonly ClaimRule[];
  /** Adds what further endpoints say of the person. */
  readonly enrich?: (claims: Claims, options: Options, read: ReadJson) => Promise<Claims>;
}

/** Reads a JSON answer of the provider with the person's token. */
export type ReadJson = (url: string) => Promise<unknown>;

/** Makes the plugin of a plain OAuth 2 provider. */
export function defineOAuth2Plugin<Options extends ExternalOptions>(
  preset: OAuth2Preset<Options>,
): AuthenticatorPlugin<Options, ExternalAuthenticator> {
  const { name, section, optionsSchema, defaults } = preset;
  return {
    kind: 'authenticator',
    name,
    section,
    optionsSchema,
    secretOptions: ['client_secret'],
    findProblems: (options) => findExternalProblems(options, preset.urlsOf(options), defaults),
    create: (options, host) => createOAuth2Authenticator(preset, options, host),
  };
}

function createOAuth2Authenticator<Options extends ExternalOptions>(
  preset: OAuth2Preset<Options>,
  options: Options,
  host: AuthenticatorHost,
): ExternalAuthenticator {
  const { defaults } = preset;
  const endpoints = preset.endpointsOf(options);
  const issuer = endpoints.issuer ?? new URL(endpoints.authorizeUrl).origin;
  const groupsClaim = options.groups_claim ?? defaults.groupsClaim;
  const grants = [...(preset.grantsOf?.(options) ?? [])];
  if (options.allowed_groups.length > 0 && groupsClaim !== undefined) {
    grants.push({ option: 'allowed_groups', claim: groupsClaim, anyOf: options.allowed_groups });
  }
  const connect = () => connectTo(endpoints, { issuer, options, host, preset });

  return createExternalAuthenticator(
    {
      label: options.login_service ?? preset.label,
      icon: preset.icon,
      connector: createConnector({ connect, log: host.log }),
      scopes: options.scope ?? defaults.scopesOf(options),
      authorizeParameters: options.extra_authorize_params,
      askAgainParameters: preset.askAgainParameters ?? {},
      hasIdToken: false,
      usernameClaim: options.username_claim ?? defaults.usernameClaim,
      strippedDomain: options.strip_domain,
      rules: {
        gates: [],
        grants,
        allowedDomains: options.allowed_domains,
        adminGroups: options.admin_groups,
        groupsClaim,
        rolesClaim: options.roles_claim,
      },
      clockToleranceSeconds: options.clock_tolerance,
      logoutRedirectUrl: options.logout_redirect_url,
      logsOutAtProvider: false,
      async readUser(query) {
        const read = createReader(query);
        const claims = await read(endpoints.userdataUrl);
        if (!isClaims(claims)) throw new UntrustedAnswer('the user endpoint sent no JSON object');
        return (await preset.enrich?.(claims, options, read)) ?? claims;
      },
      subjectOf: (claims) =>
        preset
          .subjectClaimsOf(options)
          .map((claim) => idAt(claims, claim))
          .find((id) => id !== undefined),
      issuer,
      reachUrl: endpoints.authorizeUrl,
      async reach() {
        const headers = { accept: 'text/html' };
        const { status } = await boundedFetchOf(options)(endpoints.authorizeUrl, {
          method: 'GET',
          headers,
        });
        // Without parameters it refuses, each provider in its own way.
        if (status >= 500) throw new UnexpectedStatus(status, 'authorize_url');
      },
    },
    host,
  );
}

function boundedFetchOf({ allow_insecure_requests, request_timeout }: ExternalOptions) {
  return createBoundedFetch({
    allowsLoopbackHttp: allow_insecure_requests,
    timeoutMs: request_timeout * 1000,
  });
}

async function connectTo<Options extends ExternalOptions>(
  { authorizeUrl, tokenUrl, userdataUrl }: OAuth2Endpoints,
  parts: {
    readonly issuer: string;
    readonly options: Options;
    readonly host: AuthenticatorHost;
    readonly preset: OAuth2Preset<Options>;
  },
): Promise<Connection> {
  const { issuer, options, host, preset } = parts;
  const { client_secret: secret, allow_insecure_requests: allowsInsecure } = options;
  const clientId = options.client_id ?? (await host.defaultClientId());
  const authentication =
    secret === undefined
      ? None()
      : preset.sendsSecretInHeader(options)
        ? ClientSecretBasic(secret)
        : ClientSecretPost(secret);
  const config = new Configuration(
    {
      issuer,
      authorization_endpoint: authorizeUrl,
      token_endpoint: tokenUrl,
      userinfo_endpoint: userdataUrl,
    },
    clientId,
    { [clockTolerance]: options.clock_tolerance },
    authentication,
  );
  config.timeout = options.request_timeout;
  config[customFetch] = boundedFetchOf(options);
  if (allowsInsecure) allowInsecureRequests(config);
  return { config, keys: undefined };
}

function createReader({ connection: { config }, accessToken }: UserQuery): ReadJson {
  return async (url) => {
    const headers = new Headers({ accept: 'application/json' });
    const response = await fetchProtectedResource(
      config,
      accessToken,
      new URL(url),
      'GET',
      null,
      headers,
    );
    if (!response.ok) {
      await response.body?.cancel();
      throw new UnexpectedStatus(response.status, new URL(url).pathname);
    }
    try {
      return (await response.json()) as unknown;
    } catch (error) {
      throw new UntrustedAnswer('the provider sent no JSON', { cause: error });
    }
  };
}
