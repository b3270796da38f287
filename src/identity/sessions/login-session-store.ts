import type { Kysely } from 'kysely';
import { currentActor } from '../../platform/audit/actor.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';
import { recordActivity } from '../../platform/store/record-activity.ts';
import { deleteSession } from '../../platform/store/session-grants.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { recordOfUser, userNameOf } from '../../platform/store/user-name-of.ts';

/** A browser's login: who, since when, from where. */
export interface LoginSession {
  /** Value of the `hub-session-id` cookie; links tokens to the login and is not a credential. */
  readonly sessionId: string;
  readonly userId: string;
  readonly authenticator: string;
  readonly identityId: string | undefined;
  readonly createdAt: Date;
  readonly lastSeenAt: Date;
  readonly expiresAt: Date;
  readonly address: string;
  readonly userAgent: string;
  readonly upstreamSessionId: string | undefined;
  readonly idTokenSealed: string | undefined;
  /** What the login is worth, as OpenID Connect names it. */
  readonly acr?: string | undefined;
}

export interface NewLoginSession extends Omit<LoginSession, 'lastSeenAt'> {
  /** How the user showed who they are (RFC 8176), as far as it is known. */
  readonly amr?: readonly string[] | undefined;
}

/** By REFEDS, for a login in which more than one factor was used; others are not named. */
const multiFactorAcr = 'https://refeds.org/profile/mfa';

export type UpstreamSession = Partial<Pick<LoginSession, 'upstreamSessionId' | 'idTokenSealed'>>;

export interface LoginSessionStore {
  find(sessionId: string): Promise<LoginSession | undefined>;
  listOfUser(userId: string): Promise<LoginSession[]>;
  /** Sessions of an identity, optionally only those of one session at the provider. */
  listOfIdentity(identityId: string, upstreamSessionId?: string): Promise<LoginSession[]>;
  /** Logins through an authenticator that belong to one session at its provider. */
  listOfUpstreamSession(authenticator: string, upstreamSessionId: string): Promise<LoginSession[]>;
  /**
   * Creates a session. Of more than `limit` those of the user end that were not used for longest; tells
   * which. Without a limit none do.
   */
  create(
    session: NewLoginSession,
    options?: { readonly limit: number },
  ): Promise<readonly string[]>;
  /** How many there are, and of how many users. */
  count(): Promise<{ readonly sessions: number; readonly users: number }>;
  /** Ends a session with its tokens and codes; false when it was not there. */
  end(sessionId: string): Promise<boolean>;
  /** Keeps what the provider said of its session when the user confirmed a login there. */
  setUpstreamSession(sessionId: string, upstream: UpstreamSession): Promise<void>;
  /** Notes when each was last used, which is activity of its user too. */
  recordSeen(sessionIds: ReadonlyMap<string, Date>): Promise<void>;
  purgeExpired(now: Date): Promise<number>;
}

export function createLoginSessionStore(database: HubDatabase): LoginSessionStore {
  const { kysely } = database;
  const announceEnd = (sessionId: string) =>
    database.announceChange({ kind: 'session_ended', sessionId });

  return {
    async find(sessionId) {
      const row = await kysely
        .selectFrom('login_sessions')
        .selectAll()
        .where('session_id', '=', sessionId)
        .where('expires_at', '>', database.now())
        .executeTakeFirst();
      return row === undefined ? undefined : toLoginSession(row);
    },

    async listOfUser(userId) {
      const rows = await kysely
        .selectFrom('login_sessions')
        .selectAll()
        .where('user_id', '=', userId)
        .where('expires_at', '>', database.now())
        .orderBy('last_seen_at', 'desc')
        .execute();
      return rows.map(toLoginSession);
    },

    async listOfIdentity(identityId, upstreamSessionId) {
      let query = kysely
        .selectFrom('login_sessions')
        .selectAll()
        .where('identity_id', '=', identityId);
      if (upstreamSessionId !== undefined) {
        query = query.where('upstream_session_id', '=', upstreamSessionId);
      }
      return (await query.execute()).map(toLoginSession);
    },

    async listOfUpstreamSession(authenticator, upstreamSessionId) {
      const rows = await kysely
        .selectFrom('login_sessions')
        .selectAll()
        .where('authenticator', '=', authenticator)
        .where('upstream_session_id', '=', upstreamSessionId)
        .execute();
      return rows.map(toLoginSession);
    },

    async count() {
      const row = await kysely
        .selectFrom('login_sessions')
        .select(({ fn }) => [
          fn.countAll<number | bigint | string>().as('sessions'),
          fn.count<number | bigint | string>('user_id').distinct().as('users'),
        ])
        .where('expires_at', '>', database.now())
        .executeTakeFirstOrThrow();
      return { sessions: Number(row.sessions), users: Number(row.users) };
    },

    async create(session, { limit } = { limit: 0 }) {
      const surplus = await database.transaction(async (transaction) => {
        if (limit > 0) await lockUser(transaction, database, session.userId);
        await insert(transaction, session);
        await recordOfUser(database, transaction, session.userId, {
          action: 'login',
          detail: { authenticator: session.authenticator, session: session.sessionId },
        });
        return limit > 0 ? surplusOf(transaction, session, limit) : [];
      });
      // After the lock: who makes a token with one of theirs holds that one and waits for the user.
      for (const sessionId of surplus) await this.end(sessionId);
      return surplus;
    },

    async end(sessionId) {
      const isEnded = await database.transaction(async (transaction) => {
        const userId = await deleteSession(transaction, database, sessionId);
        if (userId === undefined) return false;
        const name = (await userNameOf(transaction, userId)) ?? '';
        await database.audit.record(transaction, {
          action: currentActor()?.sessionId === sessionId ? 'logout' : 'session.end',
          target: { kind: 'session', name, part: sessionId },
        });
        return true;
      });
      announceEnd(sessionId);
      return isEnded;
    },

    async setUpstreamSession(sessionId, { upstreamSessionId, idTokenSealed }) {
      await kysely
        .updateTable('login_sessions')
        .set({
          upstream_session_id: upstreamSessionId ?? null,
          id_token_encrypted: idTokenSealed ?? null,
        })
        .where('session_id', '=', sessionId)
        .execute();
    },

    async recordSeen(sessionIds) {
      for (const [sessionId, seenAt] of sessionIds) {
        await kysely
          .updateTable('login_sessions')
          .set({ last_seen_at: seenAt.getTime() })
          .where('session_id', '=', sessionId)
          .execute();
      }
      const rows = await kysely
        .selectFrom('login_sessions')
        .select(['session_id', 'user_id'])
        .where('session_id', 'in', textsOf([...sessionIds.keys()], database))
        .execute();
      const seenByUser = new Map<string, Date>();
      for (const { session_id, user_id } of rows) {
        const [seenAt, other] = [sessionIds.get(session_id), seenByUser.get(user_id)];
        if (seenAt !== undefined && !(other && other > seenAt)) seenByUser.set(user_id, seenAt);
      }
      await recordActivity(database, 'users', seenByUser);
    },

    async purgeExpired(now) {
      const expired = await kysely
        .selectFrom('login_sessions')
        .select('session_id')
        .where('expires_at', '<=', now.getTime())
        .limit(1000)
        .execute();
      for (const { session_id } of expired) {
        await database.transaction((transaction) =>
          deleteSession(transaction, database, session_id),
        );
        announceEnd(session_id);
      }
      return expired.length;
    },
  };
}

async function insert(transaction: Kysely<Tables>, session: NewLoginSession): Promise<void> {
  const { amr = [] } = session;
  await transaction
    .insertInto('login_sessions')
    .values({
      session_id: session.sessionId,
      user_id: session.userId,
      authenticator: session.authenticator,
      identity_id: session.identityId ?? null,
      created_at: session.createdAt.getTime(),
      last_seen_at: session.createdAt.getTime(),
      expires_at: session.expiresAt.getTime(),
      address: session.address.slice(0, 100),
      user_agent: session.userAgent.slice(0, 400),
      upstream_session_id: session.upstreamSessionId ?? null,
      id_token_encrypted: session.idTokenSealed ?? null,
      amr: amr.length === 0 ? null : JSON.stringify(amr),
      acr: amr.includes('mfa') ? multiFactorAcr : null,
    })
    .execute();
}

/** The sessions of a user beyond a limit, but for a new one. */
async function surplusOf(
  transaction: Kysely<Tables>,
  { userId, sessionId }: NewLoginSession,
  limit: number,
): Promise<string[]> {
  const others = await transaction
    .selectFrom('login_sessions')
    .select('session_id')
    .where('user_id', '=', userId)
    .where('session_id', '!=', sessionId)
    .orderBy('last_seen_at', 'desc')
    .execute();
  return others.slice(limit - 1).map((other) => other.session_id);
}

function toLoginSession(row: Row<'login_sessions'>): LoginSession {
  return {
    sessionId: row.session_id,
    userId: row.user_id,
    authenticator: row.authenticator,
    identityId: row.identity_id ?? undefined,
    createdAt: new Date(row.created_at),
    lastSeenAt: new Date(row.last_seen_at),
    expiresAt: new Date(row.expires_at),
    address: row.address,
    userAgent: row.user_agent,
    upstreamSessionId: row.upstream_session_id ?? undefined,
    idTokenSealed: row.id_token_encrypted ?? undefined,
    ...(row.acr !== null && { acr: row.acr }),
  };
}
