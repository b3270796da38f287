import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomToken } from '../../../platform/crypto/random.ts';
import { HubError } from '../../../platform/errors.ts';
import { countApiTokens } from '../../../platform/store/api-tokens.ts';
import { tokensRevoked } from '../../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { isForeignKeyViolation } from '../../../platform/store/storage-error.ts';
import { surplusOf } from '../../../platform/store/surplus.ts';
import type { Row, Tables } from '../../../platform/store/tables.ts';
import { deleteGrants, deleteMadeWith, holdToken } from '../../../platform/store/token-makers.ts';
import { lockUser } from '../../../platform/store/user-lock.ts';
import { userNameOf } from '../../../platform/store/user-name-of.ts';
import { text } from '../../../platform/texts/text.ts';
import type { AccessToken, IssuedAccessToken, NewAccessToken } from './access-token.ts';

/** Access tokens that live in the database. Expired ones are never found. */
export interface AccessTokenStore {
  /** Throws `forbidden` when the token it is made with has ended. Of many that a client got for itself, or for one token, the oldest end. */
  create(token: NewAccessToken): Promise<IssuedAccessToken>;
  /** Creates a token made by hand, unless its user has as many of these as are allowed. */
  createWithin(
    limit: number,
    userId: string,
    token: NewAccessToken,
  ): Promise<IssuedAccessToken | undefined>;
  /** How many tokens a user has that were made by hand or by the API. */
  countOfUser(userId: string): Promise<number>;
  findByHash(tokenHash: string): Promise<AccessToken | undefined>;
  findById(id: string): Promise<AccessToken | undefined>;
  /** With the grants that a client can refresh its tokens by, which are as tokens here. Newest first. */
  listOfUser(userId: string): Promise<AccessToken[]>;
  /** What a user has granted to a client, with the grants. */
  listOfClientAndUser(clientId: string, userId: string): Promise<AccessToken[]>;
  /**
   * Each `revoke` ends tokens with all that were made with them, announces it, and returns how many
   * there were.
   */
  revoke(id: string): Promise<number>;
  revokeByClientAndUser(clientId: string, userId: string): Promise<number>;
  /** Ends a server's own tokens, not those that its visitors hold. */
  revokeByServer(serverId: string): Promise<number>;
  /** Records when tokens were last used; never sets a time back. */
  recordUse(lastUsedAtById: ReadonlyMap<string, Date>): Promise<void>;
  /** Removes expired tokens and codes. They are refused without it; it only keeps the tables small. */
  purgeExpired(): Promise<number>;
}

const dayMs = 24 * 3600 * 1000;
/** A grant that is not used for so long has ended (RFC 9700 §4.14.2). */
export const grantIdleMs = 90 * dayMs;
/** For so long a used refresh token is known for one. */
export const usedKeptMs = 7 * dayMs;

interface AccessTokenStoreOptions {
  readonly database: HubDatabase;
  readonly now?: () => number;
}

export function createAccessTokenStore({
  database,
  now = database.now,
}: AccessTokenStoreOptions): AccessTokenStore {
  const { kysely } = database;

  const liveTokens = () =>
    kysely
      .selectFrom('access_tokens')
      .leftJoin('users', 'users.id', 'access_tokens.user_id')
      .leftJoin('servers', 'servers.id', 'access_tokens.server_id')
      .selectAll('access_tokens')
      .select(['users.name as user_name', 'servers.name as server_name'])
      .where((is) =>
        is.or([
          is('access_tokens.expires_at', 'is', null),
          is('access_tokens.expires_at', '>', now()),
        ]),
      );
  const newestFirst = () =>
    liveTokens().orderBy('access_tokens.created_at', 'desc').orderBy('access_tokens.id');

  const grantsOf = async (
    which: Partial<Record<'client_id' | 'user_id', string>>,
  ): Promise<AccessToken[]> => {
    const rows = await kysely
      .selectFrom('grants')
      .innerJoin('users', 'users.id', 'grants.user_id')
      .selectAll('grants')
      .select('users.name as user_name')
      .where((is) => is.and(which))
      .where('last_used_at', '>', now() - grantIdleMs)
      .orderBy('grants.created_at', 'desc')
      .execute();
    return rows.map((row) => ({
      id: row.id,
      owner: { kind: 'user', name: row.user_name },
      userId: row.user_id,
      clientId: row.client_id,
      ...(row.session_id !== null && { sessionId: row.session_id }),
      scopes: JSON.parse(row.scopes) as string[],
      note: 'Refresh token',
      createdAt: new Date(row.created_at),
      lastUsedAt: new Date(row.last_used_at),
    }));
  };

  const announced = (revokedIds: readonly string[]): number => {
    if (revokedIds.length > 0) database.announceChange(tokensRevoked(revokedIds));
    return revokedIds.length;
  };

  const revokeWhere = async (
    values: Partial<Record<'id' | 'client_id' | 'user_id' | 'server_id', string>>,
  ) =>
    announced(
      await database.transaction(async (transaction) => {
        const { grantIds, tokenIds } =
          values.client_id === undefined
            ? { grantIds: [], tokenIds: [] }
            : await deleteGrants(transaction, database, values);
        const revoked = await transaction
          .deleteFrom('access_tokens')
          .where((is) => is.and(values))
          .returning(['id', 'service_name', 'client_id'])
          .returning((is) =>
            is
              .selectFrom('users')
              .select('users.name')
              .whereRef('users.id', '=', 'access_tokens.user_id')
              .as('user_name'),
          )
          .execute();
        const made = await deleteMadeWith(
          transaction,
          database,
          revoked.map(({ id }) => id),
        );
        const ids = [...tokenIds, ...made];
        const [first] = revoked;
        // A server's own tokens come and go with it.
        if (revoked.length + grantIds.length > 0 && values.server_id === undefined) {
          const client = values.client_id ?? first?.client_id ?? undefined;
          const detail = { tokens: ids.length, ...(client !== undefined && { client }) };
          const part = revoked.length === 1 && first !== undefined ? { part: first.id } : {};
          const ofGrants = async () => userNameOf(transaction, values.user_id ?? '');
          const name = first?.user_name ?? first?.service_name ?? (await ofGrants()) ?? '';
          const target = { kind: 'token', name, ...part } as const;
          await database.audit.record(transaction, { action: 'token.revoke', target, detail });
        }
        return ids;
      }),
    );

  /** Throws `forbidden` when the token it is made with has ended. */
  async function holdMaker(transaction: Kysely<Tables>, { madeBy }: NewAccessToken): Promise<void> {
    if (madeBy === undefined || (await holdToken(transaction, database, madeBy))) return;
    throw new HubError('forbidden', text`The token of this request has ended.`);
  }

  async function insertRecorded(
    transaction: Kysely<Tables>,
    token: NewAccessToken,
  ): Promise<IssuedAccessToken> {
    const issued = await insertAccessToken(transaction, token, { codeHash: null, now: now() });
    // The start of a server makes it one.
    if (token.serverId !== undefined) return issued;
    const { owner, scopes, note, expiresAt } = token;
    const name =
      owner.kind === 'service'
        ? owner.serviceName
        : (owner.userName ?? (await userNameOf(transaction, owner.userId)) ?? '');
    await database.audit.record(transaction, {
      action: 'token.create',
      target: { kind: 'token', name, part: issued.id },
      detail: { note, scopes, ...(expiresAt !== undefined && { expires_at: expiresAt }) },
    });
    return issued;
  }

  return {
    async create(token) {
      const ofStart = token.serverId !== undefined && token.madeBy === undefined;
      // Many may start at once, and single statements wait for one another less.
      if (ofStart) return insertAccessToken(kysely, token, { codeHash: null, now: now() });
      const { issued, ended } = await database.transaction(async (transaction) => {
        await holdMaker(transaction, token);
        const issued = await insertRecorded(transaction, token);
        const { owner, madeBy: made_by = null, clientId: client_id } = token;
        if (client_id === undefined) return { issued, ended: [] };
        const service_name = owner.kind === 'service' ? owner.serviceName : null;
        const which = { client_id, made_by, service_name };
        const ended = await endSurplus(transaction, database, which, issued.id, maxTokensOfClient);
        return { issued, ended };
      });
      announced(ended);
      return issued;
    },

    createWithin: (limit, userId, token) =>
      database.transaction(async (transaction) => {
        await holdMaker(transaction, token);
        await lockUser(transaction, database, userId);
        if ((await countApiTokens(transaction, userId, now())) >= limit) return undefined;
        return insertRecorded(transaction, token);
      }),

    countOfUser: (userId) => countApiTokens(kysely, userId, now()),

    async findByHash(tokenHash) {
      const row = await liveTokens().where('token_hash', '=', tokenHash).executeTakeFirst();
      return row && toAccessToken(row);
    },

    async findById(id) {
      const row = await liveTokens().where('access_tokens.id', '=', id).executeTakeFirst();
      return row && toAccessToken(row);
    },

    async listOfUser(userId) {
      const rows = await newestFirst().where('access_tokens.user_id', '=', userId).execute();
      return [...(await grantsOf({ user_id: userId })), ...rows.map(toAccessToken)];
    },

    async listOfClientAndUser(clientId, userId) {
      const rows = await newestFirst()
        .where('client_id', '=', clientId)
        .where('access_tokens.user_id', '=', userId)
        .execute();
      const grants = await grantsOf({ client_id: clientId, user_id: userId });
      return [...grants, ...rows.map(toAccessToken)];
    },

    revoke: (id) => revokeWhere({ id }),
    revokeByServer: (serverId) => revokeWhere({ server_id: serverId }),
    revokeByClientAndUser: (clientId, userId) =>
      revokeWhere({ client_id: clientId, user_id: userId }),

    async recordUse(lastUsedAtById) {
      if (lastUsedAtById.size === 0) return;
      await database.transaction(async (transaction) => {
        for (const [id, lastUsedAt] of lastUsedAtById) {
          const time = lastUsedAt.getTime();
          await transaction
            .updateTable('access_tokens')
            .set({ last_used_at: time })
            .where('id', '=', id)
            .where((is) => is.or([is('last_used_at', 'is', null), is('last_used_at', '<', time)]))
            .execute();
        }
      });
    },

    async purgeExpired() {
      const time = now();
      const codes = await kysely
        .deleteFrom('authorization_codes')
        .where('expires_at', '<=', time)
        .executeTakeFirstOrThrow();
      const tokens = await kysely
        .deleteFrom('access_tokens')
        .where('expires_at', '<=', time)
        .executeTakeFirstOrThrow();
      await kysely
        .deleteFrom('grants')
        .where('last_used_at', '<=', time - grantIdleMs)
        .execute();
      await kysely
        .deleteFrom('refresh_tokens')
        .where('used_at', '<=', time - usedKeptMs)
        .execute();
      return Number(codes.numDeletedRows + tokens.numDeletedRows);
    },
  };
}

/** Makes an access token and the row that it is kept as. */
export function makeAccessToken(
  token: NewAccessToken,
  { codeHash, now }: { readonly codeHash: string | null; readonly now: number },
): { readonly issued: IssuedAccessToken; readonly row: Row<'access_tokens'> } {
  const issued = { id: randomUUID(), token: randomToken() };
  const row = {
    id: issued.id,
    token_hash: hashSecret(issued.token),
    kind: token.serverId === undefined ? token.owner.kind : 'server',
    user_id: token.owner.kind === 'user' ? token.owner.userId : null,
    service_name: token.owner.kind === 'service' ? token.owner.serviceName : null,
    server_id: token.serverId ?? null,
    client_id: token.clientId ?? null,
    session_id: token.sessionId ?? null,
    made_by: token.madeBy ?? null,
    code_hash: codeHash,
    grant_id: token.grantId ?? null,
    scopes: JSON.stringify(token.scopes),
    note: token.note,
    created_at: now,
    last_used_at: null,
    expires_at: token.expiresAt?.getTime() ?? null,
  };
  return { issued, row };
}

/** Inserts an access token, alone or as a part of a transaction. Throws `not_found` for user and server. */
export async function insertAccessToken(
  kysely: Kysely<Tables>,
  token: NewAccessToken,
  options: { readonly codeHash: string | null; readonly now: number },
): Promise<IssuedAccessToken> {
  const { issued, row } = makeAccessToken(token, options);
  await kysely.insertInto('access_tokens').values(row).execute().catch(failWithoutOwner);
  return issued;
}

/** Throws what the insertion of an access token failed with: `not_found` where its user or server is missing. */
export function failWithoutOwner(error: unknown): never {
  if (!isForeignKeyViolation(error)) throw error;
  throw new HubError('not_found', text`The user or the server is there no more.`, { cause: error });
}

/** What one login may hold of one client: a client that lost its cookie gets another, and another. */
export const maxTokensOfLogin = 20;
/** What a client may hold that it got for itself, or for one token: more than it asks for at once for as many services. */
const maxTokensOfClient = 200;

/** Ends the oldest tokens of a login and client, of a grant, of a token or of a client beyond a limit; tells the ids of all that ended. */
export async function endSurplus(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  which: Parameters<typeof surplusOf<'access_tokens'>>[2],
  newest: string,
  limit = maxTokensOfLogin,
): Promise<string[]> {
  const ids = await surplusOf(transaction, 'access_tokens', which, { limit, newest });
  if (ids.length > 0)
    await transaction.deleteFrom('access_tokens').where('id', 'in', ids).execute();
  return deleteMadeWith(transaction, database, ids);
}

type AccessTokenRow = Row<'access_tokens'> & {
  readonly user_name: string | null;
  readonly server_name: string | null;
};

function toAccessToken(row: AccessTokenRow): AccessToken {
  const userName = row.user_name ?? '';
  return {
    id: row.id,
    owner:
      row.user_id === null
        ? { kind: 'service', name: row.service_name ?? '' }
        : { kind: 'user', name: userName },
    ...(row.user_id !== null && { userId: row.user_id }),
    ...(row.server_id !== null &&
      row.server_name !== null && {
        server: { id: row.server_id, userName, serverName: row.server_name },
      }),
    ...(row.client_id !== null && { clientId: row.client_id }),
    ...(row.session_id !== null && { sessionId: row.session_id }),
    scopes: JSON.parse(row.scopes) as string[],
    note: row.note,
    createdAt: new Date(row.created_at),
    ...(row.last_used_at !== null && { lastUsedAt: new Date(row.last_used_at) }),
    ...(row.expires_at !== null && { expiresAt: new Date(row.expires_at) }),
  };
}
