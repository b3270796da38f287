import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { growingUpTo } from '../../../platform/concurrency/answer-cache.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { type KeyvSpace, useOnce } from '../../../platform/store/keyv-space.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
import type { Client } from './client.ts';
import { requestClient } from './client-request.ts';

/** What clients may sign assertions with. */
export const assertionAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const;
const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** Of clocks. */
const toleranceSeconds = 60;
const maxLifetimeSeconds = 3600;
const fetchMs = 5_000;

/** A JWT by which a client shows who it is, and the client that it names. */
export interface ClientAssertion {
  readonly clientId: string;
  readonly jwt: string;
}

/** Whether an assertion is one of a client, unused so far. */
export type VerifyClientAssertion = (client: Client, jwt: string) => Promise<boolean>;

/**
 * Reads an assertion (RFC 7521 §4.2); undefined where there is none. Throws `invalid_request` for one beside another way
 * to authenticate, and `invalid_client` for one that names no client, or another one than the request.
 */
export async function readClientAssertion(
  authorization: string | undefined,
  form: URLSearchParams,
): Promise<ClientAssertion | undefined> {
  const jwt = parameterValue(form, 'client_assertion');
  if (jwt === undefined) return undefined;
  if (form.has('client_secret') || /^basic\b/i.test(authorization ?? ''))
    throw new OAuthError('invalid_request', 'The client authenticated in two ways at once.');
  if (parameterValue(form, 'client_assertion_type') !== assertionType)
    throw new OAuthError('invalid_client', 'The client_assertion_type is not known.');
  const clientId = await subjectOf(jwt);
  const named = parameterValue(form, 'client_id');
  if (clientId === undefined || (named !== undefined && named !== clientId))
    throw new OAuthError('invalid_client', 'The client_assertion does not name the client.');
  return { clientId, jwt };
}

async function subjectOf(jwt: string): Promise<string | undefined> {
  const { decodeJwt } = await import('jose');
  try {
    const { sub } = decodeJwt<{ sub?: unknown }>(jwt);
    return typeof sub === 'string' ? sub : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Verifies assertions by the keys of clients (RFC 7523 §3, OpenID Connect Core 1.0 §9): signed with one that is large
 * enough, for this server, by and about the client, for an hour at most, and used once.
 */
export function createClientAssertionVerifier(deps: {
  /** Of which an assertion names one. */
  readonly audiences: readonly string[];
  readonly used: Pick<KeyvSpace<true>, 'update'>;
  readonly now: () => number;
  readonly log: Logger;
}): VerifyClientAssertion {
  const remote = new LRUCache<string, JWTVerifyGetKey>(growingUpTo(1_000));

  async function keysOf({ jwks, jwksUri, hosts }: Client): Promise<JWTVerifyGetKey | undefined> {
    const { createLocalJWKSet, createRemoteJWKSet, customFetch } = await import('jose');
    if (jwks !== undefined) return createLocalJWKSet(jwks as unknown as JSONWebKeySet);
    if (jwksUri === undefined) return undefined;
    const key = `${hosts} ${jwksUri}`;
    const known = remote.get(key);
    if (known !== undefined) return known;
    const keys = createRemoteJWKSet(new URL(jwksUri), {
      async [customFetch](url: string) {
        const { status, body } = await requestClient(url, AbortSignal.timeout(fetchMs), { hosts });
        return new Response(body, { status });
      },
    });
    remote.set(key, keys);
    return keys;
  }

  return async (client, jwt) => {
    const keys = await keysOf(client);
    if (keys === undefined) return false;
    const { jwtVerify } = await import('jose');
    try {
      const { payload } = await jwtVerify(jwt, keys, {
        algorithms: [...assertionAlgorithms],
        issuer: client.clientId,
        subject: client.clientId,
        audience: [...deps.audiences],
        requiredClaims: ['exp', 'jti'],
        clockTolerance: toleranceSeconds,
        currentDate: new Date(deps.now()),
      });
      const { exp = 0, jti } = payload;
      const leftSeconds = exp + toleranceSeconds - deps.now() / 1000;
      if (leftSeconds > maxLifetimeSeconds + 2 * toleranceSeconds) return false;
      const key = hashSecret(JSON.stringify([client.clientId, jti]));
      return await useOnce(deps.used, key, Math.max(1, leftSeconds) * 1000);
    } catch (error) {
      deps.log.info({ client: client.clientId, err: error }, 'client assertion refused');
      return false;
    }
  };
}
