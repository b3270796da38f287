import {
  allowInsecureRequests,
  type Configuration,
  clockTolerance,
  customFetch,
  discovery,
  fetchUserInfo,
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
import { idAt } from './claims.ts';
import { clientAuthentication, type ProviderClient, resolveClient } from './client-registration.ts';
import { type Connection, createConnector } from './connection.ts';
import { createExternalAuthenticator, type UserQuery } from './external-authenticator.ts';
import { type ExternalOptions, findExternalProblems, secretOptions } from './options.ts';
import { UntrustedAnswer } from './provider-errors.ts';
import { createProviderKeys } from './signed-tokens.ts';

/** The options of every OpenID Connect provider, whatever its own are called. */
type OidcOptions = ExternalOptions & {
  readonly registration_token?: string | undefined;
  readonly logout_at_provider: boolean;
  readonly second_factor_acr: readonly string[];
};

/** What makes one OpenID Connect provider different from another. */
export interface OidcPreset<Options extends OidcOptions> {
  readonly name: string;
  readonly section: string;
  readonly label: string;
  readonly icon: LoginIcon;
  readonly optionsSchema: z.ZodType<Options>;
  /** The issuer, and the name of the option it comes from. */
  readonly issuerOf: (options: Options) => { readonly url: string; readonly option: string };
  readonly defaults?: {
    readonly scopes?: readonly string[];
    readonly usernameClaim?: string;
    readonly groupsClaim?: string;
  };
  /** In place of `prompt=login` and `max_age=0`. */
  readonly askAgainParameters?: Readonly<Record<string, string>>;
  readonly authorizeParametersOf?: (options: Options) => Readonly<Record<string, string>>;
  /** Further rules that must be met, each with the name of its option. */
  readonly gatesOf?: (options: Options) => readonly ClaimRule[];
}

/** Makes the plugin of an OpenID Connect provider. */
export function defineOidcPlugin<Options extends OidcOptions>(
  preset: OidcPreset<Options>,
): AuthenticatorPlugin<Options, ExternalAuthenticator> {
  const { name, section, optionsSchema, defaults = {} } = preset;
  return {
    kind: 'authenticator',
    name,
    section,
    optionsSchema,
    secretOptions,
    findProblems(options) {
      const issuer = preset.issuerOf(options);
      const urls = { [issuer.option]: issuer.url };
      return findExternalProblems(options, urls, defaults);
    },
    create: (options, host) => createOidcAuthenticator(preset, options, host),
  };
}

function createOidcAuthenticator<Options extends OidcOptions>(
  preset: OidcPreset<Options>,
  options: Options,
  host: AuthenticatorHost,
): ExternalAuthenticator {
  const { defaults = {} } = preset;
  const issuer = preset.issuerOf(options).url;
  const groupsClaim = options.groups_claim ?? defaults.groupsClaim;
  const usernameClaim = options.username_claim ?? defaults.usernameClaim ?? 'preferred_username';
  const allowedGroups: ClaimRule[] =
    options.allowed_groups.length === 0 || groupsClaim === undefined
      ? []
      : [{ option: 'allowed_groups', claim: groupsClaim, anyOf: options.allowed_groups }];

  return createExternalAuthenticator(
    {
      label: options.login_service ?? preset.label,
      icon: preset.icon,
      connector: createConnector({ connect: () => connect(issuer, options, host), log: host.log }),
      scopes: options.scope ?? defaults.scopes ?? ['openid', 'profile', 'email'],
      authorizeParameters: {
        ...preset.authorizeParametersOf?.(options),
        ...options.extra_authorize_params,
      },
      askAgainParameters: preset.askAgainParameters ?? { prompt: 'login', max_age: '0' },
      hasIdToken: true,
      usernameClaim,
      strippedDomain: options.strip_domain,
      rules: {
        gates: preset.gatesOf?.(options) ?? [],
        grants: allowedGroups,
        allowedDomains: options.allowed_domains,
        adminGroups: options.admin_groups,
        groupsClaim,
        rolesClaim: options.roles_claim,
      },
      clockToleranceSeconds: options.clock_tolerance,
      logoutRedirectUrl: options.logout_redirect_url,
      logsOutAtProvider: options.logout_at_provider,
      secondFactorAcr: options.second_factor_acr,
      readUser: readUserInfo,
      subjectOf: (claims) => idAt(claims, 'sub'),
      issuer,
      reachUrl: issuer,
      async reach() {
        // Without a client of its own none is registered: to look must not change anything there.
        await discovererOf(issuer, options)({ clientId: options.client_id ?? 'unregistered' });
      },
    },
    host,
  );
}

/** Reads what the provider says of itself (OpenID Connect Discovery 1.0). */
function discovererOf(issuer: string, options: OidcOptions) {
  const fetch = boundedFetchOf(options);
  const tolerance = { [clockTolerance]: options.clock_tolerance };
  return ({ clientId, clientSecret }: ProviderClient) =>
    discovery(new URL(issuer), clientId, tolerance, clientAuthentication(clientSecret), {
      timeout: options.request_timeout,
      [customFetch]: fetch,
      execute: options.allow_insecure_requests ? [allowInsecureRequests] : [],
    });
}

function boundedFetchOf({ allow_insecure_requests, request_timeout }: OidcOptions) {
  return createBoundedFetch({
    allowsLoopbackHttp: allow_insecure_requests,
    timeoutMs: request_timeout * 1000,
  });
}

async function connect(
  issuer: string,
  options: OidcOptions,
  host: AuthenticatorHost,
): Promise<Connection> {
  const timeoutMs = options.request_timeout * 1000;
  const allowsInsecure = options.allow_insecure_requests;
  const fetch = boundedFetchOf(options);
  const discover = discovererOf(issuer, options);

  let config: Configuration;
  if (options.client_id === undefined && options.client_secret === undefined) {
    const server = (await discover({ clientId: 'to-be-registered' })).serverMetadata();
    const registration = {
      registrationToken: options.registration_token,
      allowsInsecure,
      timeoutSeconds: options.request_timeout,
    };
    config = await discover(await resolveClient(server, registration, { host, fetch }));
  } else {
    const clientId = options.client_id ?? (await host.defaultClientId());
    config = await discover({ clientId, clientSecret: options.client_secret });
  }
  const { client_id: clientId } = config.clientMetadata();
  host.log.info({ issuer, clientId }, 'login provider connected');
  return { config, keys: createProviderKeys(config.serverMetadata(), { fetch, timeoutMs }) };
}

async function readUserInfo({ connection: { config }, accessToken, idClaims }: UserQuery) {
  if (config.serverMetadata().userinfo_endpoint === undefined) return {};
  const subject = idAt(idClaims, 'sub');
  if (subject === undefined) throw new UntrustedAnswer('the ID token names no user (sub)');
  return await fetchUserInfo(config, accessToken, subject);
}
