import { LRUCache } from 'lru-cache';
import { hashSecret } from '../../crypto/hash.ts';
import type { Authority } from '../../rbac/authority.ts';
import type { Caller, CallerToken } from '../../rbac/caller.ts';
import type { ChangeSubject } from '../../store/change-subject.ts';
import type { HubDatabase } from '../../store/database.ts';
import type { UserStore } from '../../users/user-store.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { AccessToken } from './access-token.ts';
import type { AccessTokenStore } from './access-token-store.ts';
import type { ServiceTokens } from './service-tokens.ts';
import type { UseRecorder } from './use-recorder.ts';

/** Finds out who stands behind an access token, and what they may do now. */
export interface TokenVerifier extends Disposable {
  /** Undefined for a token that is unknown, expired or revoked, or whose owner or client is gone. */
  verify(token: string): Promise<Caller | undefined>;
}

export interface TokenVerifierDeps {
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash'>;
  readonly serviceTokens: ServiceTokens;
  readonly users: Pick<UserStore, 'findById'>;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly authority: Pick<Authority, 'scopesOfOwner' | 'effectiveScopes'>;
  readonly database: Pick<HubDatabase, 'onChange'>;
  readonly useRecorder: Pick<UseRecorder, 'recordUse'>;
  readonly now?: () => number;
  readonly cacheSize?: number;
}

interface Verified {
  readonly caller: Caller;
  readonly validUntil: number;
}

const longestToken = 1024;
const acceptedForMs = 60_000;
const refusedForMs = 5_000;

/**
 * Creates the verifier. Answers are kept by the token's hash, for a minute at most and never past the
 * token's end; an announced change empties the memory at once, of all that it concerns.
 */
export function createTokenVerifier({
  accessTokens,
  serviceTokens,
  users,
  clients,
  authority,
  database,
  useRecorder,
  now = Date.now,
  cacheSize = 10_000,
}: TokenVerifierDeps): TokenVerifier {
  const accepted = new LRUCache<string, Verified>({ max: cacheSize });
  // Apart from the accepted ones, so that guessing tokens does not push those out.
  const refused = new LRUCache<string, number>({ max: cacheSize });
  let changeCount = 0;

  const stopListening = database.onChange((subject) => {
    changeCount += 1;
    if (subject !== undefined) {
      forget(subject);
      return;
    }
    accepted.clear();
    refused.clear();
  });

  function forget(subject: ChangeSubject): void {
    if (subject.kind === 'user_added') return;
    const isVoid =
      subject.kind === 'session_ended'
        ? ({ sessionId }: Caller) => sessionId === subject.sessionId
        : ({ accessToken }: Caller) => subject.tokenIds.includes(accessToken?.id ?? '');
    const hashes = [...accepted.entries()].filter(([, { caller }]) => isVoid(caller));
    for (const [hash] of hashes) accepted.delete(hash);
  }

  async function callerOfService(name: string): Promise<Caller> {
    const owner = { kind: 'service', name } as const;
    return { owner, scopes: await authority.scopesOfOwner(owner) };
  }

  async function callerOf(accessToken: AccessToken): Promise<Caller | undefined> {
    const { owner, userId, clientId, server, scopes, sessionId } = accessToken;
    const user = userId === undefined ? undefined : await users.findById(userId);
    if (owner.kind === 'user' && user === undefined) return undefined;
    const client = clientId === undefined ? undefined : await clients.find(clientId);
    // What was granted to a client ends with the client.
    if (clientId !== undefined && client === undefined) return undefined;
    const identity = client?.identity ?? (server && { clientId: '', server });
    return {
      owner,
      scopes: await authority.effectiveScopes({ owner, scopes, client: identity }),
      ...(user !== undefined && { user }),
      accessToken: callerToken(accessToken),
      ...(sessionId !== undefined && { sessionId }),
    };
  }

  async function verifyStored(tokenHash: string): Promise<Caller | undefined> {
    const time = now();
    const known = accepted.get(tokenHash);
    if (known !== undefined && known.validUntil > time) return known.caller;
    if ((refused.get(tokenHash) ?? 0) > time) return undefined;

    const changesBefore = changeCount;
    const accessToken = await accessTokens.findByHash(tokenHash);
    const caller = accessToken && (await callerOf(accessToken));
    // An answer that was begun before a change must not outlive it.
    if (changesBefore === changeCount) {
      if (caller === undefined) refused.set(tokenHash, time + refusedForMs);
      else {
        const expiresAt = accessToken?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
        accepted.set(tokenHash, { caller, validUntil: Math.min(expiresAt, time + acceptedForMs) });
      }
    }
    return caller;
  }

  return {
    async verify(token) {
      if (token === '' || token.length > longestToken) return undefined;
      const tokenHash = hashSecret(token);
      const service = serviceTokens.findService(tokenHash);
      if (service !== undefined) return await callerOfService(service);
      const caller = await verifyStored(tokenHash);
      if (caller?.accessToken !== undefined) useRecorder.recordUse(caller.accessToken.id);
      return caller;
    },

    [Symbol.dispose]() {
      stopListening();
      accepted.clear();
      refused.clear();
    },
  };
}

function callerToken({
  id,
  clientId,
  sessionId,
  note,
  expiresAt,
  server,
}: AccessToken): CallerToken {
  return {
    id,
    note,
    ...(clientId !== undefined && { clientId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(server !== undefined && {
      server: { userName: server.userName, serverName: server.serverName },
    }),
  };
}
