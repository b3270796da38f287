import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  customFetch as joseFetch,
  jwtVerify,
} from 'jose';
import { createBoundedFetch } from './bounded-fetch.ts';
import type { HeaderOptions } from './header-options.ts';
import { acceptedAlgorithms } from './signed-tokens.ts';

export type SignedClaims =
  | { readonly outcome: 'verified'; readonly claims: JWTPayload }
  /** `unreachable`: the keys of the issuer cannot be had. */
  | { readonly outcome: 'unreachable'; readonly reason: string }
  | { readonly outcome: 'invalid'; readonly reason: string };

/** Checks the JWT in which a proxy names a user. Never throws. */
export type VerifySignedClaims = (token: string) => Promise<SignedClaims>;

const keyTimeoutMs = 5_000;
const keyCooldownMs = 3_000;
const keyLifetimeMs = 600_000;
const clockToleranceSeconds = 30;

/**
 * Creates the check of RFC 7519 §7.2 with the rules of RFC 8725: signed by a key of the issuer with an
 * asymmetric algorithm, of this issuer, for this audience, with an end, and no token of another kind.
 * Throws when the file of the keys cannot be read.
 */
export function createSignedClaims(
  options: HeaderOptions,
  { directory }: { readonly directory: string },
): VerifySignedClaims {
  const { jwt_issuer: issuer = '', jwt_audience: audience = [] } = options;
  const keys = keysOf(options, directory);

  return async (token) => {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: acceptedAlgorithms,
        clockTolerance: clockToleranceSeconds,
        requiredClaims: ['exp'],
      });
      const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
      if (type !== undefined && type !== 'jwt') return invalid('it is a token of another type');
      return { outcome: 'verified', claims: payload };
    } catch (error) {
      const isAnswer = error instanceof errors.JOSEError && !isAboutKeys(error);
      if (isAnswer) return invalid(error.message);
      const reason = error instanceof Error ? error.message : String(error);
      return { outcome: 'unreachable', reason };
    }
  };
}

/** Whether the key set itself is missing or no key set: the fault of the issuer, not of the token. */
function isAboutKeys(error: errors.JOSEError): boolean {
  return (
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid ||
    error.code === 'ERR_JOSE_GENERIC'
  );
}

function keysOf(options: HeaderOptions, directory: string): JWTVerifyGetKey {
  const { jwt_keys: source = '', allow_insecure_requests } = options;
  if (/^https?:\/\//.test(source)) {
    return createRemoteJWKSet(new URL(source), {
      [joseFetch]: createBoundedFetch({
        allowsLoopbackHttp: allow_insecure_requests,
        timeoutMs: keyTimeoutMs,
      }),
      timeoutDuration: keyTimeoutMs,
      cooldownDuration: keyCooldownMs,
      cacheMaxAge: keyLifetimeMs,
    });
  }
  const file = resolve(directory, source);
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(file, 'utf8')) as JSONWebKeySet);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`jwt_keys: ${file} holds no key set: ${reason}`, { cause: error });
  }
}

function invalid(reason: string): SignedClaims {
  return { outcome: 'invalid', reason };
}
