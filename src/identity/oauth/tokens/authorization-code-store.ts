import { type Kysely, sql } from 'kysely';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import { tokensRevoked } from '../../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { prepareQuery, prepareStatement } from '../../../platform/store/queries.ts';
import { surplusOf } from '../../../platform/store/surplus.ts';
import type { Row, Tables } from '../../../platform/store/tables.ts';
import { deleteGrants, deleteMadeWith } from '../../../platform/store/token-makers.ts';
import { rememberLogin } from '../logout/client-login-store.ts';
import type { OAuthError } from '../oauth-error.ts';
import type { IssuedAccessToken, NewAccessToken } from './access-token.ts';
import {
  endSurplus,
  failWithoutOwner,
  insertAccessToken,
  makeAccessToken,
  maxTokensOfLogin,
} from './access-token-store.ts';
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
  /** Of many that a login got for one client the oldest end. */
  create(code: AuthorizationCode): Promise<string>;
  /**
   * Takes a code and stores the token it gives, in one transaction: a second use of the code waits
   * until the token exists, and so can revoke it. A refused code stays taken: there is no
   * second guess at its verifier. `decide` may be asked twice.
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
  const { dialect } = database;
  const takePlain = preparePlainExchange(database);
  const findUnused = prepareQuery(
    database.kysely,
    ({ codeHash, time }: { readonly codeHash: string; readonly time: number }) =>
      database.kysely
        .selectFrom('authorization_codes')
        .innerJoin(
          'login_sessions as session',
          'session.session_id',
          'authorization_codes.session_id',
        )
        .innerJoin('users', 'users.id', 'session.user_id')
        .selectAll('authorization_codes')
        .select(['users.name as user_name', 'session.created_at as login_at'])
        .select(['session.amr', 'session.acr'])
        .where('code_hash', '=', codeHash)
        .where('used_at', 'is', null)
        .where('authorization_codes.expires_at', '>', time)
        .where('session.expires_at', '>', time),
  );

  /**
   * Exchanges a code for an access token and nothing else, by one statement; undefined, and nothing has changed,
   * where more is to be done or the code is not to be had.
   */
  async function exchangePlain(
    codeHash: string,
    decide: (code: AuthorizationCode) => ExchangeDecision,
  ): Promise<ExchangeResult | undefined> {
    const time = now();
    const [found] = await findUnused({ codeHash, time });
    if (found === undefined) return undefined;
    const code = toGrantedCode(found, { ...found, created_at: found.login_at });
    const decision = decide(code);
    if (decision.outcome === 'refused' || decision.mayRefresh || decision.remembersLogin)
      return undefined;
    const { accessToken } = decision;
    const { issued, row } = makeAccessToken(accessToken, { codeHash, now: time });
    if (!(await takePlain(row))) return undefined;
    return { outcome: 'granted', issued, accessToken, refreshToken: undefined, code };
  }

  return {
    async create(code) {
      const secret = randomSecret();
      const codeHash = hashSecret(secret);
      const createdAt = now();
      await database.transaction(async (transaction) => {
        await transaction
          .insertInto('authorization_codes')
          .values({
            code_hash: codeHash,
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
        const surplus = await surplusOf(
          transaction,
          'authorization_codes',
          { client_id: code.clientId, session_id: code.sessionId },
          { limit: maxTokensOfLogin, newest: codeHash },
        );
        if (surplus.length > 0)
          await transaction
            .deleteFrom('authorization_codes')
            .where('code_hash', 'in', surplus)
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
      const plain = await exchangePlain(codeHash, decide);
      if (plain !== undefined) return plain;
      const time = now();
      let revokedIds: string[] = [];
      const result = await database.transaction(async (transaction): Promise<ExchangeResult> => {
        const row = await takeCode(transaction, dialect, { codeHash, time })
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
          .innerJoin('users', 'users.id', 'login_sessions.user_id')
          .select(['users.name as user_name', 'login_sessions.created_at', 'amr', 'acr'])
          .where('session_id', '=', row.session_id)
          .executeTakeFirstOrThrow();
        const granted = toGrantedCode(row, session);
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

function toGrantedCode(
  row: Row<'authorization_codes'>,
  session: Pick<Row<'login_sessions'>, 'created_at' | 'amr' | 'acr'> & {
    readonly user_name: string;
  },
): GrantedCode {
  return {
    clientId: row.client_id,
    userId: row.user_id,
    userName: session.user_name,
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
}

/** Takes a code that is unused, has not expired, and whose login has neither: it holds that until the transaction ends. */
function takeCode(
  kysely: Kysely<Tables>,
  dialect: HubDatabase['dialect'],
  { codeHash, time }: { readonly codeHash: string; readonly time: number },
) {
  return kysely
    .updateTable('authorization_codes')
    .set({ used_at: time })
    .where('code_hash', '=', codeHash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', time)
    .where((is) =>
      is.exists(
        is
          .selectFrom('login_sessions')
          .select('user_id')
          .whereRef('login_sessions.session_id', '=', 'authorization_codes.session_id')
          .where('login_sessions.expires_at', '>', time)
          // Before the code is: one that is being ended is waited for, and one that is held ends after this.
          .$if(dialect === 'postgres', (query) => query.forKeyShare()),
      ),
    );
}

/**
 * What takes the code of an access token and inserts the token, both or neither; false where the code is used,
 * expired or ended, its login has ended, or has as many tokens of the client as it may hold.
 */
function preparePlainExchange({
  kysely,
  dialect,
}: Pick<HubDatabase, 'kysely' | 'dialect'>): (token: Row<'access_tokens'>) => Promise<boolean> {
  const taking = ({ code_hash, created_at }: Row<'access_tokens'>) =>
    takeCode(kysely, dialect, { codeHash: code_hash ?? '', time: created_at })
      .where(
        (is) =>
          is
            .selectFrom('access_tokens')
            .select(({ fn }) => fn.countAll<number>().as('count'))
            .whereRef('access_tokens.client_id', '=', 'authorization_codes.client_id')
            .whereRef('access_tokens.session_id', '=', 'authorization_codes.session_id'),
        '<',
        maxTokensOfLogin,
      )
      .returning('code_hash');
  const insertion = (token: Row<'access_tokens'>) => sql`insert into access_tokens
    (${sql.join(tokenColumns.map((name) => sql.ref(name)))})
    select ${sql.join(tokenColumns.map((name) => token[name]))}`;

  if (dialect === 'postgres') {
    const take = prepareQuery(kysely, (token: Row<'access_tokens'>) => ({
      compile: () =>
        sql<object>`with taken as (${taking(token)}) ${insertion(token)} from taken
          returning code_hash`.compile(kysely),
    }));
    return async (token) => (await take(token).catch(failWithoutOwner)).length > 0;
  }
  const take = prepareStatement(taking);
  const insert = prepareStatement((token: Row<'access_tokens'>) => ({
    compile: () => sql<object>`${insertion(token)} where changes() > 0`.compile(kysely),
  }));
  return async (token) => {
    const query = { ...take(token), following: insert(token) };
    const { rows } = await kysely.executeQuery(query).catch(failWithoutOwner);
    return rows.length > 0;
  };
}

/** All of them, as the type holds. */
const tokenColumns = Object.keys({
  id: true,
  token_hash: true,
  kind: true,
  user_id: true,
  service_name: true,
  server_id: true,
  client_id: true,
  session_id: true,
  made_by: true,
  code_hash: true,
  grant_id: true,
  scopes: true,
  note: true,
  created_at: true,
  last_used_at: true,
  expires_at: true,
} satisfies Record<keyof Row<'access_tokens'>, true>) as (keyof Row<'access_tokens'>)[];
