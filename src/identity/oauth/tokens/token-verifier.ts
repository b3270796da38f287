import { hashSecret } from '../../../platform/crypto/hash.ts';
import { maxTokenLength } from '../../../platform/protocol/token-parameter.ts';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../../platform/store/change-aware-cache.ts';
import type { Caller, CallerToken } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { UserStore } from '../../users/user-store.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { OAuthError } from '../oauth-error.ts';
import { openidScope } from '../openid/claims.ts';
import type { AccessToken } from './access-token.ts';
import type { AccessTokenStore } from './access-token-store.ts';
import type { ImportedTokenStore } from './imported-token-store.ts';
import type { UseRecorder } from './use-recorder.ts';

/** Finds out who stands behind an access token, and what they may do now. */
export interface TokenVerifier extends Disposable {
  /** Undefined for a token that is unknown, expired or revoked, or whose owner is gone or suspended, or client gone. */
  verify(token: string): Promise<Caller | undefined>;
  /** As `verify`, for a token that was verified before, by its id. That does not count as a use of the token. */
  findBearer(accessTokenId: string): Promise<Caller | undefined>;
}

export interface TokenVerifierDeps {
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash' | 'findById'>;
  /** Where tokens can be that were taken over from a JupyterHub. */
  readonly importedTokens: ImportedTokenStore;
  readonly serviceTokens: ServiceTokens;
  /** Whether a token, given as its hash, is that of the hub's own gateway processes. */
  readonly isGatewayToken?: (tokenHash: string) => boolean;
  readonly users: Pick<UserStore, 'findById'>;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'effectiveScopes'>;
  readonly database: ChangeSource;
  readonly useRecorder: Pick<UseRecorder, 'recordUse'>;
  readonly cacheSize?: number;
}

/** A gateway process that the hub started. No service can have such a name. */
export const ownGateway: Caller = {
  owner: { kind: 'service', name: '(gateway)' },
  scopes: new Set(['gateway']),
};
const refusedForMs = 5_000;

/**
 * Answers are kept by the token's hash and id, for a minute at most and never past the
 * token's end; an announced change empties the memory at once, of all that it concerns.
 */
export function createTokenVerifier({
  accessTokens,
  importedTokens,
  serviceTokens,
  isGatewayToken = () => false,
  users,
  clients,
  authorizer,
  database,
  useRecorder,
  cacheSize = 10_000,
}: TokenVerifierDeps): TokenVerifier {
  const changes = watchChanges(database);
  const createCache = () =>
    createChangeAwareCache<Caller>({
      changes,
      max: cacheSize,
      maxMisses: cacheSize,
      missTtlMs: refusedForMs,
      expiresAtMs: ({ accessToken }) => accessToken?.expiresAt?.getTime(),
      invalidatedBy: { endOf: ({ sessionId, accessToken }) => [sessionId, accessToken?.id] },
    });
  const byHash = createCache();
  const byId = createCache();

  async function callerOfService(name: string): Promise<Caller> {
    const owner = { kind: 'service', name } as const;
    return { owner, scopes: await authorizer.scopesOfOwner(owner) };
  }

  async function callerOf(accessToken: AccessToken | undefined): Promise<Caller | undefined> {
    if (accessToken === undefined) return undefined;
    const { owner, userId, clientId, server, scopes, sessionId } = accessToken;
    const user = userId === undefined ? undefined : await users.findById(userId);
    if (owner.kind === 'user' && (user === undefined || user.isSuspended)) return undefined;
    const client = clientId === undefined ? undefined : await clients.find(clientId);
    // What was granted to a client ends with the client.
    if (clientId !== undefined && client === undefined) return undefined;
    const identity = client?.identity ?? (server && { clientId: '', server });
    return {
      owner,
      scopes: await authorizer.effectiveScopes({ owner, scopes, client: identity }),
      ...(user !== undefined && { user }),
      accessToken: callerToken(accessToken),
      ...(sessionId !== undefined && { sessionId }),
    };
  }

  async function find(token: string, tokenHash: string): Promise<AccessToken | undefined> {
    const found = await accessTokens.findByHash(tokenHash);
    if (found !== undefined || !(await importedTokens.adopt(token, tokenHash))) return found;
    return await accessTokens.findByHash(tokenHash);
  }

  return {
    async verify(token) {
      if (token === '' || token.length > maxTokenLength) return undefined;
      const tokenHash = hashSecret(token);
      if (isGatewayToken(tokenHash)) return ownGateway;
      const service = serviceTokens.findService(tokenHash);
      if (service !== undefined) return await callerOfService(service);
      const caller = await byHash.getOrLoad(tokenHash, async () =>
        callerOf(await find(token, tokenHash)),
      );
      if (caller?.accessToken !== undefined) useRecorder.recordUse(caller.accessToken.id);
      return caller;
    },

    findBearer: (id) => byId.getOrLoad(id, async () => callerOf(await accessTokens.findById(id))),

    [Symbol.dispose]() {
      changes[Symbol.dispose]();
      byHash.clear();
      byId.clear();
    },
  };
}

function callerToken({
  id,
  clientId,
  sessionId,
  scopes,
  note,
  expiresAt,
  server,
}: AccessToken): CallerToken {
  return {
    id,
    note,
    ...(clientId !== undefined && { clientId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(scopes.includes(openidScope) && { grantedScopes: scopes }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(server !== undefined && {
      server: { userName: server.userName, serverName: server.serverName },
    }),
  };
}

/** How a request to a protected resource presents its token. */
export interface TokenPresentation {
  /** In the Authorization header. */
  readonly headerToken: string | undefined;
  readonly query: URLSearchParams;
}

/**
 * Reads the access token of a request: of its Authorization header or of the URL parameter `token`. Undefined when there is none; throws `invalid_request` for more than one, since a
 * client must not use more than one method (RFC 6750 §2).
 */
export function readPresentedToken({ headerToken, query }: TokenPresentation): string | undefined {
  const tokens = query.getAll('token').filter((token) => token !== '');
  if (headerToken !== undefined) tokens.push(headerToken);
  if (tokens.length > 1) {
    throw new OAuthError('invalid_request', 'The request presents more than one token.');
  }
  return tokens[0];
}

/** Why a request to a protected resource is refused (RFC 6750 §3.1). */
export type BearerError = 'invalid_request' | 'invalid_token' | 'insufficient_scope';

/**
 * Value of `WWW-Authenticate` for a refused request (RFC 6750 §3). Without an error, when the request
 * presented no token at all, it says nothing more than that one is needed.
 */
export function bearerChallenge(error?: BearerError, scope?: string): string {
  const details = [
    'realm="hub"',
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(scope === undefined ? [] : [`scope="${scope}"`]),
  ];
  return `Bearer ${details.join(', ')}`;
}

/** The API tokens of the configuration's services, known in memory only, or to the instance that runs one. */
export interface ServiceTokens {
  /** Sets the token of a service; one it had before ends. Announce the change afterwards. */
  set(serviceName: string, token: string): void;
  /** The same for a token that only the instance knows that runs the service. */
  setHash(serviceName: string, tokenHash: string): void;
  delete(serviceName: string): void;
  /** The service that a token, given as its hash, belongs to. */
  findService(tokenHash: string): string | undefined;
}

/**
 * Keyed by hash, so that the time a look-up takes tells nothing
 * about the tokens in it.
 */
export function createServiceTokens(): ServiceTokens {
  const serviceByHash = new Map<string, string>();
  const hashByService = new Map<string, string>();

  const remove = (serviceName: string) => {
    const tokenHash = hashByService.get(serviceName);
    if (tokenHash === undefined) return;
    hashByService.delete(serviceName);
    serviceByHash.delete(tokenHash);
  };

  function setHash(serviceName: string, tokenHash: string): void {
    remove(serviceName);
    hashByService.set(serviceName, tokenHash);
    serviceByHash.set(tokenHash, serviceName);
  }

  return {
    set: (serviceName, token) => setHash(serviceName, hashSecret(token)),
    setHash,
    delete: remove,
    findService: (tokenHash) => serviceByHash.get(tokenHash),
  };
}
