import {
  allowInsecureRequests,
  type ClientAuth,
  type ClientMetadata,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  customFetch,
  dynamicClientRegistration,
  None,
  type ServerMetadata,
} from 'openid-client';
import { z } from 'zod';
import type { AuthenticatorHost } from '../../src/plugin/plugin.ts';
import type { BoundedFetch } from './bounded-fetch.ts';
import { explainFailure } from './provider-errors.ts';

/** The hub as a client of a provider. */
export interface ProviderClient {
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
}

const registrationSchema = z.object({
  issuer: z.string(),
  callbackUrl: z.string(),
  clientId: z.string(),
  clientSecret: z.string().optional(),
  /** Seconds since 1970; 0 for never (OpenID Connect Dynamic Client Registration 1.0 §3.2). */
  secretExpiresAt: z.number(),
});

type Registration = z.output<typeof registrationSchema>;

export interface RegistrationOptions {
  readonly registrationToken: string | undefined;
  readonly allowsInsecure: boolean;
  readonly timeoutSeconds: number;
}

/**
 * Finds out as which client the hub appears where none is configured: one that the provider registers
 * by itself, kept for later; else `hub-client-<uuid>`, which the operator registered there.
 */
export async function resolveClient(
  server: ServerMetadata,
  options: RegistrationOptions,
  parts: { readonly host: AuthenticatorHost; readonly fetch: BoundedFetch },
): Promise<ProviderClient> {
  const { host } = parts;
  const registration =
    server.registration_endpoint === undefined
      ? undefined
      : ((await savedRegistration(server, host)) ?? (await register(server, options, parts)));
  return registration ?? { clientId: await host.defaultClientId() };
}

/** Shows the client's secret in a way that the provider supports; many take Basic without saying so. */
export function clientAuthentication(clientSecret: string | undefined): ClientAuth {
  if (clientSecret === undefined) return None();
  return (server, client, body, headers) => {
    const takesForm = server.token_endpoint_auth_methods_supported?.includes('client_secret_post');
    const show = takesForm === true ? ClientSecretPost : ClientSecretBasic;
    show(clientSecret)(server, client, body, headers);
  };
}

async function savedRegistration(
  server: ServerMetadata,
  host: AuthenticatorHost,
): Promise<Registration | undefined> {
  const kept = registrationSchema.safeParse(parseJson(await host.settings.find(settingKey)));
  if (!kept.success) return undefined;
  const { issuer, callbackUrl, secretExpiresAt } = kept.data;
  const isCurrent = secretExpiresAt === 0 || secretExpiresAt > Date.now() / 1000 + 3600;
  const isSame = issuer === server.issuer && callbackUrl === host.callbackUrl;
  return isSame && isCurrent ? kept.data : undefined;
}

/** Registers the hub; undefined when the provider does not register strangers. */
async function register(
  server: ServerMetadata,
  options: RegistrationOptions,
  { host, fetch }: { readonly host: AuthenticatorHost; readonly fetch: BoundedFetch },
): Promise<Registration | undefined> {
  const metadata: Partial<ClientMetadata> = {
    client_name: host.hubTitle,
    redirect_uris: [host.callbackUrl],
    response_types: ['code'],
    grant_types: ['authorization_code', ...(offersRefresh(server) ? ['refresh_token'] : [])],
    post_logout_redirect_uris: [new URL('hub/logout', host.publicUrl).href],
    ...(server['backchannel_logout_supported'] === true && {
      backchannel_logout_uri: new URL('hub/backchannel_logout', host.publicUrl).href,
      backchannel_logout_session_required: true,
    }),
  };
  let registered: Configuration;
  try {
    registered = await dynamicClientRegistration(new URL(server.issuer), metadata, undefined, {
      timeout: options.timeoutSeconds,
      [customFetch]: fetch,
      execute: options.allowsInsecure ? [allowInsecureRequests] : [],
      ...(options.registrationToken !== undefined && {
        initialAccessToken: options.registrationToken,
      }),
    });
  } catch (error) {
    const { kind, explanation } = explainFailure(error);
    if (kind === 'unavailable') throw error;
    host.log.warn(
      { reason: explanation },
      'client registration at provider failed: set client_id and client_secret, or registration_token',
    );
    return undefined;
  }
  const { client_id, client_secret, client_secret_expires_at } = registered.clientMetadata();
  const registration: Registration = {
    issuer: server.issuer,
    callbackUrl: host.callbackUrl,
    clientId: client_id,
    ...(client_secret !== undefined && { clientSecret: client_secret }),
    secretExpiresAt: Number(client_secret_expires_at ?? 0),
  };
  await host.settings.set(settingKey, JSON.stringify(registration));
  host.log.info({ clientId: client_id }, 'hub registered as client at provider');
  return registration;
}

function offersRefresh({ grant_types_supported: grants }: ServerMetadata): boolean {
  return grants?.includes('refresh_token') === true;
}

const settingKey = 'client-registration';

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}
