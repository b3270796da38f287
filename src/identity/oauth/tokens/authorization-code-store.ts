import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import { tokensRevoked } from '../../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { deleteGrants, deleteMadeWith } from '../../../platform/store/token-makers.ts';
import { rememberLogin } from '../logout/client-login-store.ts';
import type { OAuthError } from '../oauth-error.ts';
import type { IssuedAccessToken, NewAccessToken } from './access-token.ts';
import { endSurplus, insertAccessToken } from './access-token-store.ts';
import type { AuthorizationCode, GrantedCode } from './authorization-code.ts';
import { endSurplusGrants, insertGrant } from './refresh-token-store.ts';

/** Decides about a code that was just taken: the token it gives, or why it gives none. */
export type ExchangeDecision =
  | {
      readonly outcome: 'granted';
      readonly accessToken: NewAccessToken;
      /** Whether the client may refresh it. */
      readonly mayRefresh: boolean;
      /** Whether the client is told of the end of the login. */
      readonly remembersLogin?: boolean;
    }
  | { readonly outcome: 'refused'; readonly error: OAuthError };

export type ExchangeResult =
  | {
      readonly outcome: 'granted';
      readonly issued: IssuedAccessToken;
      readonly accessToken: NewAccessToken;
      readonly code: GrantedCode;
      readonly refreshToken: string | undefined;
    }
  | { readonly outcome: 'refused'; readonly error: OAuthError }
  /** Never made here, expired, taken before without giving a token, or its session has ended. */
  | { readonly outcome: 'unknown' }
  /** Used before; what it gave is revoked now (RFC 6749 §4.1.2). */
  | { readonly outcome: 'replayed'; readonly revokedCount: number };

/** Authorization codes: stored as hashes, taken once. */
export interface AuthorizationCodeStore {
  create(code: AuthorizationCode): Promise<string>;
  /**
   * Takes a code and stores the token it gives, in one transaction: a second use of the code waits
   * until the token exists, and so can revoke it. A refused code stays taken: there is no
   * second guess at its verifier.
   */
  exchange(
    code: string,
    decide: (code: AuthorizationCode) => ExchangeDecision,
  ): Promise<ExchangeResult>;
}

interface AuthorizationCodeStoreOptions {
  readonly database: HubDatabase;
  /** RFC 6749 §4.1.2 recommends ten minutes at most. */
  readonly lifetimeSeconds?: number;
  readonly now?: () => number;
}

export function createAuthorizationCodeStore({
  database,
  lifetimeSeconds = 300,
  now = database.now,
}: AuthorizationCodeStoreOptions): AuthorizationCodeStore {
  return {
    async create(code) {
      const secret = randomSecret();
      const createdAt = now();
      await database.transaction(async (transaction) => {
        await transaction
          .insertInto('authorization_codes')
          .values({
            code_hash: hashSecret(secret),
            client_id: code.clientId,
            user_id: code.userId,
            session_id: code.sessionId,
            redirect_uri: code.redirectUri ?? null,
            scopes: JSON.stringify(code.scopes),
            requested_scope: code.requestedScope ?? null,
            code_challenge: code.codeChallenge ?? null,
            nonce: code.nonce ?? null,
            authenticated_at: code.authenticatedAt?.getTime() ?? null,
            created_at: createdAt,
            expires_at: createdAt + lifetimeSeconds * 1000,
            used_at: null,
          })
          .execute();
        await database.audit.record(transaction, {
          action: 'oauth.authorize',
          target: { kind: 'client', name: code.clientId },
          detail: { scopes: code.scopes },
        });
      });
      return secret;
    },

    async exchange(code, decide) {
      const codeHash = hashSecret(code);
      const time = now();
      let revokedIds: string[] = [];
      const result = await database.transaction(async (transaction): Promise<ExchangeResult> => {
        const row = await transaction
          .updateTable('authorization_codes')
          .set({ used_at: time })
          .where('code_hash', '=', codeHash)
          .where('used_at', 'is', null)
          .where('expires_at', '>', time)
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) {
          // Tokens remember their code, so a replay is noticed even after the code was purged.
          const revoked = await transaction
            .deleteFrom('access_tokens')
            .where('code_hash', '=', codeHash)
            .returning(['id', 'grant_id'])
            .execute();
          revokedIds = await deleteMadeWith(
            transaction,
            database,
            revoked.map(({ id }) => id),
          );
          for (const id of new Set(revoked.flatMap(({ grant_id }) => grant_id ?? []))) {
            revokedIds.push(...(await deleteGrants(transaction, database, { id })).tokenIds);
          }
          if (revokedIds.length === 0) return { outcome: 'unknown' };
          return { outcome: 'replayed', revokedCount: revokedIds.length };
        }
        const session = await transaction
          .selectFrom('login_sessions')
          .select(['created_at', 'amr', 'acr'])
          .where('session_id', '=', row.session_id)
          .where('expires_at', '>', time)
          .executeTakeFirst();
        // A code made while its session was being ended must not outlive it.
        if (session === undefined) return { outcome: 'unknown' };
        const granted: GrantedCode = {
          clientId: row.client_id,
          userId: row.user_id,
          sessionId: row.session_id,
          redirectUri: row.redirect_uri ?? undefined,
          scopes: JSON.parse(row.scopes) as string[],
          requestedScope: row.requested_scope ?? undefined,
          codeChallenge: row.code_challenge ?? undefined,
          nonce: row.nonce ?? undefined,
          authenticatedAt: new Date(row.authenticated_at ?? session.created_at),
          amr: session.amr === null ? undefined : (JSON.parse(session.amr) as string[]),
          acr: session.acr ?? undefined,
        };
        const decision = decide(granted);
        if (decision.outcome === 'refused') return decision;
        const { grant, refreshToken } = decision.mayRefresh
          ? await insertGrant(transaction, row, time)
          : {};
        const { sessionId: _, ...unbound } = decision.accessToken;
        const accessToken = grant === undefined ? decision.accessToken : { ...unbound, ...grant };
        if (decision.remembersLogin) await rememberLogin(transaction, row);
        const issued = await insertAccessToken(transaction, accessToken, { codeHash, now: time });
        const { client_id, session_id } = row;
        revokedIds = await endSurplus(transaction, database, { client_id, session_id }, issued.id);
        if (grant !== undefined)
          revokedIds.push(...(await endSurplusGrants(transaction, database, row)));
        return { outcome: 'granted', issued, accessToken, refreshToken, code: granted };
      });
      if (revokedIds.length > 0) database.announceChange(tokensRevoked(revokedIds));
      return result;
    },
  };
}
