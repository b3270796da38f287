import { createHash } from 'node:crypto';
import type { KeyedHash } from '../../../platform/crypto/hash.ts';
import type { Client } from '../clients/client.ts';
import { idTokenSeconds } from '../keys/signing-key-store.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { GrantedCode } from '../tokens/authorization-code.ts';
import type { UserClaims } from './claims.ts';

/** What an ID token says of: a code, and the access token that it gave. */
export interface IdTokenSubject {
  readonly client: Client;
  readonly code: GrantedCode;
  readonly accessToken: string;
}

/** Signs an ID token (OpenID Connect Core 1.0 §2). */
export type IssueIdToken = (subject: IdTokenSubject) => Promise<string>;

/** Names a login to a client: another one to each, and never the id of the session, which is let in by. */
export type SessionIdOf = (sessionId: string, clientId: string) => string;

export function createSessionIdOf(keyedHash: KeyedHash): SessionIdOf {
  return (sessionId, clientId) => keyedHash.sign(`${clientId} ${sessionId}`);
}

export function createIdTokens(deps: {
  readonly signingKeys: Pick<SigningKeys, 'sign'>;
  readonly userClaims: UserClaims;
  readonly sessionIdOf: SessionIdOf;
  readonly issuer: string;
  readonly now: () => number;
}): IssueIdToken {
  return async ({ client: { clientId, idTokenAlgorithm = 'RS256' }, code, accessToken }) => {
    const { userId, userName, sessionId, scopes, nonce, authenticatedAt, amr, acr } = code;
    const issuedAt = Math.floor(deps.now() / 1000);
    return deps.signingKeys.sign(
      {
        ...(await deps.userClaims({ id: userId, name: userName }, scopes)),
        iss: deps.issuer,
        sub: userId,
        aud: clientId,
        azp: clientId,
        iat: issuedAt,
        exp: issuedAt + idTokenSeconds,
        auth_time: Math.floor(authenticatedAt.getTime() / 1000),
        at_hash: tokenHash(accessToken),
        sid: deps.sessionIdOf(sessionId, clientId),
        ...(nonce !== undefined && { nonce }),
        ...(amr !== undefined && { amr }),
        ...(acr !== undefined && { acr }),
      },
      idTokenAlgorithm,
    );
  };
}

/** The left half of the hash of the algorithm: SHA-256 for both (Core 1.0 §3.1.3.6). */
function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url');
}
