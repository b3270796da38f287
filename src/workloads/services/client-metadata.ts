import { z } from 'zod';
import { assertionAlgorithms } from '../../identity/oauth/clients/client-assertion.ts';
import { signingAlgorithms } from '../../identity/oauth/keys/signing-key-store.ts';
import { isLoopback, isPrivateAddress } from '../../platform/addresses/host-address.ts';
import { type ServiceDefinition, serviceDefinition } from './runtime-service.ts';

/** A URL of others, which the hub or a browser may be sent to. */
function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && !text.includes('#') && !isPrivateAddress(url.hostname);
}

/** RFC 8252 §7.3: an app on a device listens there itself. */
function isDeviceUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'http:' && !text.includes('#') && isLoopback(url.hostname);
}

const address = z
  .string()
  .max(2_000)
  .refine(isPublicUrl, 'is no https:// URL without a fragment, of a host that is not private');
const redirectUri = z
  .string()
  .max(2_000)
  .refine(
    (uri) => isPublicUrl(uri) || isDeviceUrl(uri),
    'is neither an https:// URL without a fragment, of a host that is not private, nor an http:// URL of the device itself',
  );

const grantByType = {
  refresh_token: 'refresh',
  'urn:ietf:params:oauth:grant-type:device_code': 'device',
} as const;

/** What a client tells of itself (RFC 7591 §2); what is not known is passed over. */
export const clientMetadata = z.object({
  redirect_uris: z.array(redirectUri).min(1).max(20),
  token_endpoint_auth_method: z
    .enum(['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'])
    .default('client_secret_basic'),
  token_endpoint_auth_signing_alg: z.enum(assertionAlgorithms).optional(),
  grant_types: z
    .array(
      z.enum([
        'authorization_code',
        'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code',
      ]),
    )
    .default(['authorization_code']),
  response_types: z.array(z.literal('code')).default(['code']),
  client_name: z.string().max(100).optional(),
  contacts: z.array(z.string().max(200)).max(10).optional(),
  jwks: serviceDefinition.shape.oauth_jwks,
  jwks_uri: address.optional(),
  id_token_signed_response_alg: z.enum(signingAlgorithms).default('RS256'),
  backchannel_logout_uri: address.optional(),
  post_logout_redirect_uris: z.array(redirectUri).max(20).optional(),
});

export type ClientMetadata = z.output<typeof clientMetadata>;

/** The service that a registered client is. Throws ZodError for what fits no service. */
export function registeredService(
  clientId: string,
  metadata: ClientMetadata,
  registeredBy: string,
): ServiceDefinition {
  const { client_name: title, contacts: [contact] = [], grant_types } = metadata;
  const isPublic = metadata.token_endpoint_auth_method === 'none';
  return serviceDefinition.parse({
    display: false,
    info: {
      ...(title !== undefined && { title }),
      ...(contact !== undefined && { contact }),
      registered_by: registeredBy,
    },
    oauth_client_id: clientId,
    oauth_redirect_uris: metadata.redirect_uris,
    oauth_public: isPublic,
    oauth_grants: Object.entries(grantByType).flatMap(([type, grant]) =>
      grant_types.some((each) => each === type) ? [grant] : [],
    ),
    oauth_id_token_alg: metadata.id_token_signed_response_alg,
    oauth_jwks: metadata.jwks,
    oauth_jwks_uri: metadata.jwks_uri,
    oauth_logout_url: metadata.backchannel_logout_uri,
    oauth_post_logout_uris: metadata.post_logout_redirect_uris,
  });
}
