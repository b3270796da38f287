import {
  compactVerify,
  createRemoteJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  customFetch as joseFetch,
  jwtVerify,
} from 'jose';
import type { ServerMetadata } from 'openid-client';
import type { LogoutTokenResult } from '../../src/plugin/plugin.ts';
import type { BoundedFetch } from './bounded-fetch.ts';
import { isClaims } from './claims.ts';
import { UntrustedAnswer } from './provider-errors.ts';

/** Signatures by the provider's private key only: with HS256 its public key would be the secret. */
export const acceptedAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const keyCooldownMs = 3_000;
const keyLifetimeMs = 600_000;
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';
const maxLogoutTokenLength = 16_384;
/** How old a logout token without an end of its own may be. */
const logoutTokenAgeSeconds = 120;

/** The keys of a provider; an unknown key makes it ask again, but not too often. */
export function createProviderKeys(
  { jwks_uri }: ServerMetadata,
  parts: { readonly fetch: BoundedFetch; readonly timeoutMs: number },
): JWTVerifyGetKey {
  if (jwks_uri === undefined)
    throw new UntrustedAnswer('the provider publishes no keys (jwks_uri)');
  return createRemoteJWKSet(new URL(jwks_uri), {
    [joseFetch]: parts.fetch,
    timeoutDuration: parts.timeoutMs,
    cooldownDuration: keyCooldownMs,
    cacheMaxAge: keyLifetimeMs,
  });
}

/** Checks who signed an ID token. Its claims are checked elsewhere. Throws UntrustedAnswer. */
export async function requireSignature(
  idToken: string,
  server: ServerMetadata,
  keys: JWTVerifyGetKey,
): Promise<void> {
  try {
    await compactVerify(idToken, keys, { algorithms: algorithmsOf(server) });
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    if (error instanceof errors.JWKSTimeout) throw error;
    throw new UntrustedAnswer(`the ID token is not signed by the provider: ${error.message}`, {
      cause: error,
    });
  }
}

/** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6). */
export async function verifyLogoutToken(
  logoutToken: string,
  expected: {
    readonly server: ServerMetadata;
    readonly keys: JWTVerifyGetKey;
    readonly clientId: string;
    readonly clockToleranceSeconds: number;
  },
): Promise<LogoutTokenResult> {
  if (logoutToken.length > maxLogoutTokenLength) return invalid('it is too long');
  let claims: JWTPayload;
  try {
    const verified = await jwtVerify(logoutToken, expected.keys, {
      issuer: expected.server.issuer,
      audience: expected.clientId,
      algorithms: algorithmsOf(expected.server),
      clockTolerance: expected.clockToleranceSeconds,
      requiredClaims: ['iat', 'jti', 'events'],
    });
    const type = verified.protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
    if (type !== undefined && type !== 'logout+jwt' && type !== 'jwt') {
      return invalid('it is a token of another type');
    }
    claims = verified.payload;
  } catch (error) {
    if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) {
      return invalid(error.message);
    }
    throw error;
  }
  return readLogoutClaims(claims, expected.clockToleranceSeconds);
}

function readLogoutClaims(claims: JWTPayload, toleranceSeconds: number): LogoutTokenResult {
  const { iss = '', sub, jti, iat = 0, exp, events, sid, nonce } = claims;
  if (!isClaims(events) || !isClaims(events[logoutEvent])) return invalid('it tells of no logout');
  // An ID token has a nonce: it must not work as a logout token.
  if (nonce !== undefined) return invalid('it holds a nonce');
  if (typeof jti !== 'string' || jti === '') return invalid('its jti is missing');
  if (sub !== undefined && (typeof sub !== 'string' || sub === ''))
    return invalid('its sub is not text');
  if (sid !== undefined && (typeof sid !== 'string' || sid === ''))
    return invalid('its sid is not text');
  if (sub === undefined && sid === undefined) return invalid('it names neither sub nor sid');
  const now = Date.now() / 1000;
  if (iat > now + toleranceSeconds) return invalid('it is from the future');
  if (exp === undefined && iat < now - logoutTokenAgeSeconds - toleranceSeconds) {
    return invalid('it is too old');
  }
  const endsAt = (exp ?? iat + logoutTokenAgeSeconds) + toleranceSeconds + 60;
  return {
    outcome: 'verified',
    issuer: iss,
    ...(sub !== undefined && { subject: sub }),
    ...(sid !== undefined && { upstreamSessionId: sid }),
    tokenId: jti,
    expiresAt: new Date(endsAt * 1000),
  };
}

function algorithmsOf(server: ServerMetadata): string[] {
  const announced = server.id_token_signing_alg_values_supported;
  const usable = acceptedAlgorithms.filter((name) => announced?.includes(name));
  return usable.length > 0 ? usable : acceptedAlgorithms;
}

function invalid(message: string): LogoutTokenResult {
  return { outcome: 'invalid', message };
}
