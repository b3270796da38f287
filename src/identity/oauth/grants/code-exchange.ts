import type { Logger } from 'pino';
import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import type { Client } from '../clients/client.ts';
import { OAuthError } from '../oauth-error.ts';
import { openidScope } from '../openid/claims.ts';
import type { IssueIdToken } from '../openid/id-token.ts';
import { boundTo } from '../requested-scopes.ts';
import type { IssuedAccessToken, NewAccessToken } from '../tokens/access-token.ts';
import type { AuthorizationCode } from '../tokens/authorization-code.ts';
import type {
  AuthorizationCodeStore,
  ExchangeDecision,
} from '../tokens/authorization-code-store.ts';
import { verifyCodePresentation } from './authorization-code-grant.ts';

/** What a client presents to get an access token (RFC 6749 §4.1.3). */
export interface PresentedCode {
  readonly code: string;
  readonly redirectUri: string | undefined;
  readonly codeVerifier: string | undefined;
  /** What alone the token is to be good for (RFC 8707 §2.2). */
  readonly resource?: AccessTarget | undefined;
}

/** An access token that a code gave. */
export interface GrantedToken {
  readonly issued: IssuedAccessToken;
  readonly accessToken: NewAccessToken;
  /** The parameter `scope` of what asked for it; undefined when it was left out. */
  readonly requestedScope?: string | undefined;
  readonly lifetimeSeconds: number;
  /** For a client that asked for OpenID Connect. */
  readonly idToken?: string;
  /** For a token that was exchanged (RFC 8693 §2.2.1). */
  readonly issuedTokenType?: string;
  /** For a client that may refresh the access token. */
  readonly refreshToken?: string | undefined;
}

/** Exchanges a code for an access token; throws OAuthError `invalid_grant` (RFC 6749 §5.2). */
export type ExchangeCode = (client: Client, presented: PresentedCode) => Promise<GrantedToken>;

/** Of access tokens that the client can get another of without the user. */
export const shortLifetimeSeconds = 3600;

/** What a token is called that a user gave a client. */
export function loginNote({ name }: Pick<Client, 'name'>): string {
  return `Login to ${name}`;
}

/** The client's identity must be proven before it is called. */
export function createCodeExchange({
  authorizationCodes,
  issueIdToken,
  tokenLifetimeSeconds,
  countGrant,
  log,
  now = Date.now,
}: {
  readonly authorizationCodes: Pick<AuthorizationCodeStore, 'exchange'>;
  readonly issueIdToken: IssueIdToken;
  readonly tokenLifetimeSeconds: number;
  readonly countGrant?: (clientKind: Client['kind']) => void;
  readonly log: Logger;
  readonly now?: () => number;
}): ExchangeCode {
  return async (client, { code, redirectUri, codeVerifier, resource }) => {
    const mayRefresh = client.grants?.includes('refresh') === true;
    const lifetimeSeconds = mayRefresh
      ? Math.min(tokenLifetimeSeconds, shortLifetimeSeconds)
      : tokenLifetimeSeconds;
    const decide = (authorizationCode: AuthorizationCode): ExchangeDecision => {
      let { scopes } = authorizationCode;
      try {
        verifyCodePresentation(authorizationCode, { client, redirectUri, codeVerifier });
        if (resource !== undefined) scopes = boundTo(resource, scopes);
      } catch (error) {
        if (error instanceof OAuthError) return { outcome: 'refused', error };
        throw error;
      }
      const { userId, sessionId } = authorizationCode;
      return {
        outcome: 'granted',
        mayRefresh,
        remembersLogin: client.logoutUrl !== undefined && scopes.includes(openidScope),
        accessToken: {
          owner: { kind: 'user', userId },
          clientId: client.clientId,
          sessionId,
          scopes,
          note: loginNote(client),
          expiresAt: new Date(now() + lifetimeSeconds * 1000),
        },
      };
    };

    const result = await authorizationCodes.exchange(code, decide);
    switch (result.outcome) {
      case 'granted': {
        const { issued, accessToken, code: granted } = result;
        countGrant?.(client.kind);
        const subject = { client, code: granted, accessToken: issued.token };
        return {
          issued,
          accessToken,
          requestedScope: granted.requestedScope,
          ...(granted.scopes.includes(openidScope) && { idToken: await issueIdToken(subject) }),
          lifetimeSeconds,
          refreshToken: result.refreshToken,
        };
      }
      case 'refused':
        log.info({ client: client.clientId }, result.error.message);
        throw result.error;
      case 'replayed':
        log.warn(
          { client: client.clientId, revoked: result.revokedCount },
          'authorization code replayed, its tokens are revoked',
        );
        throw invalidCode();
      case 'unknown':
        throw invalidCode();
    }
  };
}

function invalidCode(): OAuthError {
  return new OAuthError('invalid_grant', 'The code is invalid, expired or was used before.');
}
