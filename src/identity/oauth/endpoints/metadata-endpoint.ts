import { isDeepStrictEqual } from 'node:util';
import type { Middleware } from 'koa';
import { setBody } from '../../../platform/http/body.ts';
import { JsonText } from '../../../platform/protocol/json-text.ts';
import { assertionAlgorithms } from '../clients/client-assertion.ts';
import { signingAlgorithms } from '../keys/signing-key-store.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { openidScopes, userClaimNames } from '../openid/claims.ts';
import { prompts } from '../openid/openid-request.ts';
import { furtherGrants } from './token-endpoint.ts';

/** RFC 8414 §3 and OpenID Connect Discovery 1.0 §4: both give the same. */
const wellKnown = ['oauth-authorization-server', 'openid-configuration'].map(
  (name) => `/.well-known/${name}`,
);

/** Those of an ID token that are about the login. */
const sessionClaimNames = [
  'iss',
  'aud',
  'exp',
  'iat',
  'auth_time',
  'nonce',
  'acr',
  'amr',
  'azp',
  'sid',
  'at_hash',
];

/** The issuer identifier of the hub: its public URL without the slash at the end (RFC 8414 §2). */
export function issuerOf(publicUrl: URL): string {
  return publicUrl.origin + publicUrl.pathname.replace(/\/+$/, '');
}

const endpointOf = (issuer: string, name: string) => `${issuer}/hub/api/oauth2/${name}`;

/** The issuer, and the endpoints of a login. */
export type ProviderEndpoints = ReturnType<typeof endpointsOf>;

export function endpointsOf(publicUrl: URL) {
  const issuer = issuerOf(publicUrl);
  return {
    issuer,
    authorization_endpoint: endpointOf(issuer, 'authorize'),
    token_endpoint: endpointOf(issuer, 'token'),
    userinfo_endpoint: endpointOf(issuer, 'userinfo'),
    // OpenID Connect RP-Initiated Logout 1.0 §2.1.
    end_session_endpoint: `${issuer}/hub/logout`,
    jwks_uri: endpointOf(issuer, 'jwks'),
  };
}

/** What an assertion of a client may name as its audience: the issuer, or an endpoint (RFC 7523 §3, RFC 9126 §2). */
export function assertionAudiences(publicUrl: URL): readonly string[] {
  const issuer = issuerOf(publicUrl);
  const endpoints = ['token', 'par', 'introspect', 'revoke', 'device_authorization'];
  return [issuer, ...endpoints.map((name) => endpointOf(issuer, name))];
}

/**
 * Paths of the metadata: the issuer's path goes behind the well-known one (RFC 8414 §3.1), and before it where OpenID
 * Connect is asked for (Discovery 1.0 §4.1) or the hub does not own the whole origin.
 */
export function metadataPaths(publicUrl: URL): readonly string[] {
  const path = publicUrl.pathname.replace(/\/+$/, '');
  return [...new Set(wellKnown.flatMap((known) => [known + path, path + known]))];
}

/** RFC 8414 §3, OpenID Connect Discovery 1.0 §4. */
export function createMetadataEndpoint({
  publicUrl,
  scopeNames,
  hasAgents = true,
}: {
  readonly publicUrl: URL;
  readonly scopeNames: readonly string[];
  /** Whether a client id may be the URL of a document about the client. */
  readonly hasAgents?: boolean;
}): Middleware {
  const metadata = new JsonText(authorizationServerMetadata(publicUrl, scopeNames, hasAgents));
  return (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=300');
    setBody(ctx, metadata);
  };
}

/** The public keys of ID tokens (RFC 7517 §5). */
export function createKeySetEndpoint({
  signingKeys,
}: {
  readonly signingKeys: Pick<SigningKeys, 'keySet'>;
}): Middleware {
  let written: { readonly set: object; readonly text: JsonText<object> } | undefined;
  return async (ctx) => {
    const set = await signingKeys.keySet();
    if (!written || !isDeepStrictEqual(written.set, set))
      written = { set, text: new JsonText(set) };
    ctx.set('Cache-Control', 'public, max-age=300');
    setBody(ctx, written.text);
  };
}

/** RFC 8414 §2, RFC 8628 §4, RFC 9126 §5, RFC 9207 §3, OpenID Connect Discovery 1.0 §3, Back-Channel Logout 1.0 §2.1. */
function authorizationServerMetadata(
  publicUrl: URL,
  scopeNames: readonly string[],
  hasAgents: boolean,
) {
  const endpoints = endpointsOf(publicUrl);
  const endpoint = (name: string) => endpointOf(endpoints.issuer, name);
  const clientAuthenticationMethods = [
    'client_secret_basic',
    'client_secret_post',
    'private_key_jwt',
  ];
  return {
    ...endpoints,
    token_endpoint_auth_methods_supported: [...clientAuthenticationMethods, 'none'],
    token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    introspection_endpoint: endpoint('introspect'),
    introspection_endpoint_auth_methods_supported: [...clientAuthenticationMethods, 'Bearer'],
    introspection_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    revocation_endpoint: endpoint('revoke'),
    revocation_endpoint_auth_methods_supported: [...clientAuthenticationMethods, 'none'],
    revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    device_authorization_endpoint: endpoint('device_authorization'),
    pushed_authorization_request_endpoint: endpoint('par'),
    require_pushed_authorization_requests: false,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    // It takes an initial access token (RFC 7591 §3).
    registration_endpoint: endpoint('register'),
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: signingAlgorithms,
    claims_supported: [...userClaimNames, ...sessionClaimNames],
    claims_parameter_supported: true,
    request_uri_parameter_supported: false,
    prompt_values_supported: prompts,
    scopes_supported: [...new Set([...openidScopes, ...scopeNames])],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', ...Object.keys(furtherGrants)],
    client_id_metadata_document_supported: hasAgents,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  };
}
