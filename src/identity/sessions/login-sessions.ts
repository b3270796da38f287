import type { Logger } from 'pino';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../platform/store/change-aware-cache.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { LoginSession, LoginSessionStore, NewLoginSession } from './login-session-store.ts';

/** A login that is valid now, with the person it belongs to. */
export interface Login {
  readonly session: LoginSession;
  readonly user: User;
}

export interface LoginSessionStart
  extends Omit<NewLoginSession, 'sessionId' | 'createdAt' | 'expiresAt' | 'idTokenSealed'> {
  /** Kept encrypted, to end the provider's session at logout. */
  readonly idToken?: string | undefined;
}

/** The logins of all browsers: kept in the database, looked up from memory. */
export interface LoginSessions extends AsyncDisposable {
  /** The login of a session id, unless it ended, expired or lost its user. */
  find(sessionId: string): Promise<Login | undefined>;
  start(login: LoginSessionStart): Promise<LoginSession>;
  /** Takes over the session that the provider has now, whose end ends the login. */
  setUpstreamSession(
    sessionId: string,
    upstream: Partial<Pick<LoginSessionStart, 'upstreamSessionId' | 'idToken'>>,
  ): Promise<void>;
  end(sessionId: string): Promise<boolean>;
  /** Ends every login of a user, but for one that may stay. Returns how many ended. */
  endAllOfUser(userId: string, options?: { readonly except?: string }): Promise<number>;
  /** Ends the logins of an identity, or only those of one session at its provider. */
  endAllOfIdentity(identityId: string, upstreamSessionId?: string): Promise<number>;
  /** Ends the logins that belong to one session at a provider. */
  endAllOfUpstreamSession(authenticator: string, upstreamSessionId: string): Promise<number>;
  listOfUser(userId: string): Promise<LoginSession[]>;
  /** The ID token that came with the login, if one did. */
  idTokenOf(session: LoginSession): string | undefined;
  /** Called with each session this process ends. Returns how to stop listening. */
  onEnd(listener: (sessionId: string) => void): () => void;
}

const cachedLogins = 10_000;
const seenFlushMs = 60_000;

export function createLoginSessions(deps: {
  readonly store: LoginSessionStore;
  readonly users: Pick<UserStore, 'findById' | 'recordActivity'>;
  readonly database: ChangeSource;
  /** Encrypts the ID tokens of providers. */
  readonly sealer: Sealer;
  readonly lifetimeSeconds: number;
  /** `Hub.session_limit_per_user`; 0 for none. */
  readonly limitPerUser: number;
  readonly log: Logger;
}): LoginSessions {
  const { store, users, database, sealer, lifetimeSeconds, log } = deps;
  const changes = watchChanges(database);
  const cache = createChangeAwareCache<Login>({
    changes,
    max: cachedLogins,
    expiresAtMs: ({ session }) => session.expiresAt.getTime(),
    invalidatedBy: { endOf: ({ session }) => [session.sessionId] },
  });
  let seen = new Map<string, Date>();
  const endListeners = new Set<(sessionId: string) => void>();

  async function load(sessionId: string): Promise<Login | undefined> {
    const session = await store.find(sessionId);
    if (session === undefined) return undefined;
    const user = await users.findById(session.userId);
    return user === undefined || user.isSuspended ? undefined : { session, user };
  }

  function tellEnd(sessionId: string): void {
    for (const listener of endListeners) listener(sessionId);
  }

  async function end(sessionId: string): Promise<boolean> {
    const isEnded = await store.end(sessionId);
    if (isEnded) tellEnd(sessionId);
    return isEnded;
  }

  async function endEach(sessions: readonly LoginSession[]): Promise<number> {
    for (const { sessionId } of sessions) await end(sessionId);
    return sessions.length;
  }

  const flushing = createPeriodic({
    intervalMs: seenFlushMs,
    async work() {
      if (seen.size === 0) return;
      const batch = seen;
      seen = new Map();
      await store.recordSeen(batch);
    },
    onError: (error) => log.warn({ err: error }, 'could not record when sessions were last seen'),
  });

  return {
    async find(sessionId) {
      const login = await cache.getOrLoad(sessionId, () => load(sessionId));
      if (login !== undefined) seen.set(sessionId, new Date());
      return login;
    },

    async start({ idToken, ...login }) {
      const createdAt = new Date(database.now());
      const sessionId = randomSecret(24);
      const session = {
        ...login,
        sessionId,
        idTokenSealed: idToken && sealer.seal(idToken, idTokenContext(sessionId)),
        createdAt,
        expiresAt: new Date(createdAt.getTime() + lifetimeSeconds * 1000),
      };
      const ended = await store.create(session, { limit: deps.limitPerUser });
      for (const each of ended) tellEnd(each);
      await users.recordActivity(new Map([[session.userId, createdAt]]));
      return { ...session, lastSeenAt: createdAt };
    },

    async setUpstreamSession(sessionId, { upstreamSessionId, idToken }) {
      const idTokenSealed = idToken && sealer.seal(idToken, idTokenContext(sessionId));
      await store.setUpstreamSession(sessionId, { upstreamSessionId, idTokenSealed });
    },

    end,

    async endAllOfUser(userId, { except } = {}) {
      const sessions = await store.listOfUser(userId);
      return await endEach(sessions.filter(({ sessionId }) => sessionId !== except));
    },

    endAllOfIdentity: async (identityId, upstreamSessionId) =>
      await endEach(await store.listOfIdentity(identityId, upstreamSessionId)),

    endAllOfUpstreamSession: async (authenticator, upstreamSessionId) =>
      await endEach(await store.listOfUpstreamSession(authenticator, upstreamSessionId)),

    idTokenOf({ sessionId, idTokenSealed }) {
      return idTokenSealed && sealer.open(idTokenSealed, idTokenContext(sessionId));
    },

    listOfUser: (userId) => store.listOfUser(userId),

    onEnd(listener) {
      endListeners.add(listener);
      return () => endListeners.delete(listener);
    },

    async [Symbol.asyncDispose]() {
      changes[Symbol.dispose]();
      await flushing[Symbol.asyncDispose]();
      await flushing.run();
    },
  };
}

/** Binds the encrypted token to its session: moved to another one it does not open. */
function idTokenContext(sessionId: string): string {
  return `id-token:${sessionId}`;
}
