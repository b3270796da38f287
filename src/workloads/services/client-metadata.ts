import { z } from 'zod';
import { assertionAlgorithms } from '../../identity/oauth/clients/client-assertion.ts';
import { clientName } from '../../identity/oauth/clients/client-documents.ts';
import { signingAlgorithms } from '../../identity/oauth/keys/signing-key-store.ts';
import { isLoopback } from '../../platform/addresses/host-address.ts';
import { mayBePublic } from '../../platform/addresses/public-lookup.ts';
import type { ServiceConfig } from '../../platform/config/config.ts';
import { type ServiceDefinition, serviceDefinition } from './runtime-service.ts';

/** A URL of others, which the hub or a browser may be sent to. */
function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && !text.includes('#') && mayBePublic(url.hostname);
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
  response_types: z.array(z.enum(['code'])).default(['code']),
  client_name: clientName.optional(),
  contacts: z.array(z.string().max(200)).max(10).optional(),
  jwks: serviceDefinition.shape.oauth_jwks,
  jwks_uri: address.optional(),
  id_token_signed_response_alg: z.enum(signingAlgorithms).default('RS256'),
  backchannel_logout_uri: address.optional(),
  post_logout_redirect_uris: z.array(redirectUri).max(20).optional(),
});

export type ClientMetadata = z.output<typeof clientMetadata>;

/** What of a service the metadata of its client are; each is there, so that what is left out goes. */
function fieldsOf(metadata: ClientMetadata) {
  const { grant_types } = metadata;
  return {
    oauth_redirect_uris: metadata.redirect_uris,
    oauth_public: metadata.token_endpoint_auth_method === 'none',
    oauth_grants: Object.entries(grantByType).flatMap(([type, grant]) =>
      grant_types.some((each) => each === type) ? [grant] : [],
    ),
    oauth_id_token_alg: metadata.id_token_signed_response_alg,
    oauth_jwks: metadata.jwks,
    oauth_jwks_uri: metadata.jwks_uri,
    oauth_logout_url: metadata.backchannel_logout_uri,
    oauth_post_logout_uris: metadata.post_logout_redirect_uris,
  };
}

function infoOf({ client_name: title, contacts: [contact] = [] }: ClientMetadata) {
  return { ...(title !== undefined && { title }), ...(contact !== undefined && { contact }) };
}

/** The service that a registered client is. Throws ZodError for what fits no service. */
export function registeredService(
  clientId: string,
  metadata: ClientMetadata,
  registeredBy: string,
): ServiceDefinition {
  return serviceDefinition.parse({
    display: false,
    info: { ...infoOf(metadata), registered_by: registeredBy },
    oauth_client_id: clientId,
    ...fieldsOf(metadata),
  });
}

/** A service with other metadata (RFC 7592 §2.2); what else administrators gave it stays. */
export function updatedService(
  { name: _name, ...before }: ServiceConfig,
  metadata: ClientMetadata,
): ServiceDefinition {
  const { title: _title, contact: _contact, ...info } = before.info;
  const fields = fieldsOf(metadata);
  const byType: readonly string[] = Object.values(grantByType);
  const further = before.oauth_grants.filter((grant) => !byType.includes(grant));
  return serviceDefinition.parse({
    ...before,
    ...fields,
    info: { ...info, ...infoOf(metadata) },
    oauth_redirect_uri: undefined,
    oauth_grants: [...fields.oauth_grants, ...further],
  });
}

/** What is registered of a client (RFC 7592 §3); of the two ways to send a secret, it names one. */
export function metadataOf(definition: ServiceConfig) {
  const { title, contact } = definition.info;
  const { oauth_redirect_uri, oauth_redirect_uris, oauth_jwks, oauth_jwks_uri } = definition;
  const hasKeys = oauth_jwks !== undefined || oauth_jwks_uri !== undefined;
  const secretOrKeys = hasKeys ? 'private_key_jwt' : 'client_secret_basic';
  return {
    redirect_uris: [oauth_redirect_uri ?? [], oauth_redirect_uris].flat(),
    token_endpoint_auth_method: definition.oauth_public ? 'none' : secretOrKeys,
    grant_types: [
      'authorization_code',
      ...Object.entries(grantByType).flatMap(([type, grant]) =>
        definition.oauth_grants.includes(grant) ? [type] : [],
      ),
    ],
    response_types: ['code'],
    client_name: typeof title === 'string' ? title : undefined,
    contacts: typeof contact === 'string' ? [contact] : undefined,
    jwks: oauth_jwks,
    jwks_uri: oauth_jwks_uri,
    id_token_signed_response_alg: definition.oauth_id_token_alg,
    backchannel_logout_uri: definition.oauth_logout_url,
    post_logout_redirect_uris: definition.oauth_post_logout_uris,
  };
}
