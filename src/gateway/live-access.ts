import type { Logger } from 'pino';
import type { LiveConnections } from '../proxy/live-connections.ts';
import type { HubDatabase } from '../store/database.ts';

/** Ends live connections whose visitor may no longer be there. */
export interface LiveAccess extends Disposable {
  /** Ends everything of a browser's login at once. */
  endSession(sessionId: string): void;
}

/** How often tokens that have expired, and sessions not seen before, are looked for. */
const lookMs = 2_000;
/** How often every connection's right is checked although nothing is known to have changed. */
const sweepIntervalMs = 30_000;
/** The least time between two sweeps: many changes in a row cost one. */
const sweepSpacingMs = 1_000;

/**
 * Creates the watch over live connections: after every change of users, roles, groups or tokens, and
 * now and then for tokens that expire, each connection's right to be there is checked again.
 */
export function createLiveAccess(deps: {
  readonly connections: LiveConnections;
  readonly database: Pick<HubDatabase, 'onChange'>;
  /** Whether a token that admitted somebody still admits to this route. */
  readonly isStillAdmitted: (accessTokenId: string, routePrefix: string) => Promise<boolean>;
  readonly isSessionOpen: (sessionId: string) => Promise<boolean>;
  readonly log: Logger;
}): LiveAccess {
  const { connections, log } = deps;
  /**
   * Sessions of connections that no token admitted, with whether they were open at the first look: the
   * cookie of a visitor whom only the service knows may name anything, and is no reason to cut them off.
   */
  const wereOpen = new Map<string, boolean>();
  let isSweeping = false;
  let isDue = false;
  let spacing: NodeJS.Timeout | undefined;

  async function sweep(): Promise<void> {
    isDue = true;
    if (isSweeping || spacing !== undefined) return;
    isSweeping = true;
    isDue = false;
    try {
      await checkTokens();
      await checkSessions();
    } catch (error) {
      log.warn({ err: error }, 'could not check whether live connections are still allowed');
    } finally {
      isSweeping = false;
      spacing = setTimeout(() => {
        spacing = undefined;
        if (isDue) void sweep();
      }, sweepSpacingMs);
      spacing.unref();
    }
  }

  function endSession(sessionId: string): void {
    connections.closeWhere((tags) => tags.sessionId === sessionId, 'session_ended');
  }

  function endExpired(): void {
    const now = Date.now();
    connections.closeWhere(
      ({ expiresAtMs }) => expiresAtMs !== undefined && expiresAtMs <= now,
      'access_revoked',
    );
  }

  /** Sessions of live connections that the service alone admitted. */
  function ownSessions(): Set<string> {
    const sessionIds = new Set<string>();
    for (const { tags } of connections.list()) {
      const { accessTokenId, sessionId } = tags;
      if (accessTokenId === undefined && sessionId !== undefined) sessionIds.add(sessionId);
    }
    return sessionIds;
  }

  async function noteSessions(): Promise<void> {
    const sessionIds = ownSessions();
    for (const known of wereOpen.keys()) if (!sessionIds.has(known)) wereOpen.delete(known);
    for (const sessionId of sessionIds) {
      if (wereOpen.has(sessionId)) continue;
      wereOpen.set(sessionId, await deps.isSessionOpen(sessionId));
    }
  }

  /** Ends the connections of sessions that were open and no longer are: another process ended them. */
  async function checkSessions(): Promise<void> {
    for (const sessionId of ownSessions()) {
      if (wereOpen.get(sessionId) !== true || (await deps.isSessionOpen(sessionId))) continue;
      wereOpen.delete(sessionId);
      endSession(sessionId);
    }
  }

  function look(): void {
    endExpired();
    noteSessions().catch((error: unknown) =>
      log.warn({ err: error }, 'could not look up the sessions of live connections'),
    );
  }

  async function checkTokens(): Promise<void> {
    const pairs = new Map<string, { id: string; prefix: string }>();
    for (const { tags } of connections.list()) {
      const { accessTokenId: id, route } = tags;
      if (id !== undefined) pairs.set(`${id} ${route.prefix}`, { id, prefix: route.prefix });
    }
    for (const { id, prefix } of pairs.values()) {
      if (await deps.isStillAdmitted(id, prefix)) continue;
      const closed = connections.closeWhere(
        (tags) => tags.accessTokenId === id && tags.route.prefix === prefix,
        'access_revoked',
      );
      log.info({ route: prefix, closed }, 'closed connections whose access was revoked');
    }
  }

  const stopListening = deps.database.onChange((subject) => {
    switch (subject?.kind) {
      case 'user_added':
        break;
      case 'session_ended':
        endSession(subject.sessionId);
        break;
      case 'tokens_revoked':
        connections.closeWhere(
          ({ accessTokenId }) => subject.tokenIds.includes(accessTokenId ?? ''),
          'access_revoked',
        );
        break;
      case undefined:
        void sweep();
    }
  });
  const timer = setInterval(() => void sweep(), sweepIntervalMs);
  timer.unref();
  const lookTimer = setInterval(look, lookMs);
  lookTimer.unref();

  return {
    endSession,
    [Symbol.dispose]() {
      clearInterval(timer);
      clearInterval(lookTimer);
      clearTimeout(spacing);
      stopListening();
    },
  };
}
