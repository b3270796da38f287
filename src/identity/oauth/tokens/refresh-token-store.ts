import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomToken } from '../../../platform/crypto/random.ts';
import { tokensRevoked } from '../../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { countOf } from '../../../platform/store/queries.ts';
import { surplusOf } from '../../../platform/store/surplus.ts';
import type { Row, Tables } from '../../../platform/store/tables.ts';
import { deleteGrants } from '../../../platform/store/token-makers.ts';
import { userNameOf } from '../../../platform/store/user-name-of.ts';
import { offlineScope } from '../requested-scopes.ts';
import type { IssuedAccessToken, NewAccessToken } from './access-token.ts';
import {
  endSurplus,
  grantIdleMs,
  insertAccessToken,
  maxTokensOfLogin,
  usedKeptMs,
} from './access-token-store.ts';

/** What a user let a client have for as long as it refreshes its tokens. */
export interface Grant {
  readonly id: string;
  readonly userId: string;
  readonly clientId: string;
  /** The login that it ends with; undefined where the user let it last beyond. */
  readonly sessionId: string | undefined;
  readonly scopes: readonly string[];
}

export type RefreshResult =
  | {
      readonly outcome: 'refreshed';
      readonly issued: IssuedAccessToken;
      readonly refreshToken: string;
    }
  /** Never made here, ended, or its login has. */
  | { readonly outcome: 'unknown' }
  /** Used before, so that two have it: the grant and all its tokens have ended now (RFC 9700 §4.14.2). */
  | { readonly outcome: 'replayed'; readonly revokedCount: number };

/** Refresh tokens: stored as hashes, of each grant one at a time that is good. */
export interface RefreshTokenStore {
  /** The grant of a refresh token, used or not. */
  find(refreshToken: string): Promise<Grant | undefined>;
  /**
   * Takes a refresh token and stores what it gives, in one transaction that others for the same grant wait for. Undefined,
   * and nothing has changed, where so many of the grant were used that no more can be remembered.
   */
  refresh(refreshToken: string, accessToken: NewAccessToken): Promise<RefreshResult | undefined>;
  /** Ends a grant with all its tokens. */
  end(grant: Grant): Promise<void>;
}

/**
 * For so long a token that was used is good once more, as its answer may have been lost. What it gave before is used by
 * that, so that there never are two good ones.
 */
const graceMs = 10_000;

/**
 * Used tokens of a grant that are known: one for each minute of the time that they are. None is forgotten for another one,
 * or a thief who refreshes fast enough would never be noticed.
 */
const maxUsedOfGrant = 10_000;

export function createRefreshTokenStore({
  database,
  now = database.now,
}: {
  readonly database: HubDatabase;
  readonly now?: () => number;
}): RefreshTokenStore {
  const tokenOf = (kysely: Kysely<Tables>, refreshToken: string) =>
    kysely.selectFrom('refresh_tokens').where('token_hash', '=', hashSecret(refreshToken));

  async function endGrant(
    transaction: Kysely<Tables>,
    { id, userId, clientId }: Pick<Grant, 'id' | 'userId' | 'clientId'>,
    action: 'oauth.replay' | 'token.revoke',
  ): Promise<string[]> {
    const { tokenIds } = await deleteGrants(transaction, database, { id });
    const name = (await userNameOf(transaction, userId)) ?? '';
    const detail = { tokens: tokenIds.length, client: clientId };
    await database.audit.record(transaction, { action, target: { kind: 'token', name }, detail });
    return tokenIds;
  }

  async function announced<Result>(
    work: (transaction: Kysely<Tables>, revoked: string[]) => Promise<Result>,
  ): Promise<Result> {
    const revoked: string[] = [];
    const result = await database.transaction((transaction) => {
      revoked.length = 0;
      return work(transaction, revoked);
    });
    if (revoked.length > 0) database.announceChange(tokensRevoked(revoked));
    return result;
  }

  return {
    async find(refreshToken) {
      const row = await tokenOf(database.kysely, refreshToken)
        .innerJoin('grants', 'grants.id', 'refresh_tokens.grant_id')
        .selectAll('grants')
        .executeTakeFirst();
      return row && toGrant(row);
    },

    refresh: (refreshToken, accessToken) =>
      announced(async (transaction, revoked): Promise<RefreshResult | undefined> => {
        const time = now();
        // A second request for the same grant waits here, and then sees what the first one did.
        const grant = await transaction
          .updateTable('grants')
          .set({ last_used_at: time })
          .where('id', 'in', tokenOf(transaction, refreshToken).select('grant_id'))
          .where('last_used_at', '>', time - grantIdleMs)
          .returningAll()
          .executeTakeFirst();
        const token = await tokenOf(transaction, refreshToken).selectAll().executeTakeFirst();
        if (grant === undefined || token === undefined) return { outcome: 'unknown' };
        if (token.used_at !== null && token.used_at <= time - graceMs) {
          revoked.push(...(await endGrant(transaction, toGrant(grant), 'oauth.replay')));
          return { outcome: 'replayed', revokedCount: revoked.length };
        }
        if (!(await isLoginAlive(transaction, grant.session_id, time)))
          return { outcome: 'unknown' };
        const used = transaction
          .selectFrom('refresh_tokens')
          .where('grant_id', '=', grant.id)
          .where('used_at', '>', time - usedKeptMs);
        if ((await countOf(used)) >= maxUsedOfGrant) return undefined;
        await transaction
          .updateTable('refresh_tokens')
          .set({ used_at: time })
          .where('grant_id', '=', grant.id)
          .where('used_at', 'is', null)
          .execute();
        const next = { ...accessToken, grantId: grant.id };
        const issued = await insertAccessToken(transaction, next, { codeHash: null, now: time });
        revoked.push(
          ...(await endSurplus(transaction, database, { grant_id: grant.id }, issued.id)),
        );
        return {
          outcome: 'refreshed',
          issued,
          refreshToken: await insertRefreshToken(transaction, grant.id),
        };
      }),

    end: (grant) =>
      announced(async (transaction, revoked) => {
        revoked.push(...(await endGrant(transaction, grant, 'token.revoke')));
      }),
  };
}

/** Stores a grant with its first refresh token. It ends with the login unless it was granted to last beyond. */
export async function insertGrant(
  transaction: Kysely<Tables>,
  {
    user_id,
    client_id,
    session_id,
    scopes,
  }: Pick<Row<'authorization_codes'>, 'user_id' | 'client_id' | 'scopes'> & {
    readonly session_id: string | null;
  },
  now: number,
): Promise<{
  readonly grant: { readonly grantId: string; readonly sessionId?: string };
  readonly refreshToken: string;
}> {
  const id = randomUUID();
  const isOffline = (JSON.parse(scopes) as string[]).includes(offlineScope);
  const sessionId = isOffline ? null : session_id;
  await transaction
    .insertInto('grants')
    .values({
      id,
      user_id,
      client_id,
      session_id: sessionId,
      scopes,
      created_at: now,
      last_used_at: now,
    })
    .execute();
  const grant = { grantId: id, ...(sessionId !== null && { sessionId }) };
  return { grant, refreshToken: await insertRefreshToken(transaction, id) };
}

/** Ends those of the grants of a user to a client that were not used the longest, beyond what one may have. */
export async function endSurplusGrants(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  { user_id, client_id }: Pick<Row<'grants'>, 'user_id' | 'client_id'>,
): Promise<string[]> {
  const which = { user_id, client_id };
  const ids = await surplusOf(transaction, 'grants', which, { limit: maxTokensOfLogin });
  const ended: string[] = [];
  for (const id of ids) ended.push(...(await deleteGrants(transaction, database, { id })).tokenIds);
  return ended;
}

async function insertRefreshToken(transaction: Kysely<Tables>, grantId: string): Promise<string> {
  const token = randomToken();
  await transaction
    .insertInto('refresh_tokens')
    .values({ token_hash: hashSecret(token), grant_id: grantId, used_at: null })
    .execute();
  return token;
}

async function isLoginAlive(
  transaction: Kysely<Tables>,
  sessionId: string | null,
  time: number,
): Promise<boolean> {
  if (sessionId === null) return true;
  const session = await transaction
    .selectFrom('login_sessions')
    .select('session_id')
    .where('session_id', '=', sessionId)
    .where('expires_at', '>', time)
    .executeTakeFirst();
  return session !== undefined;
}

function toGrant(row: Row<'grants'>): Grant {
  return {
    id: row.id,
    userId: row.user_id,
    clientId: row.client_id,
    sessionId: row.session_id ?? undefined,
    scopes: JSON.parse(row.scopes) as string[],
  };
}
