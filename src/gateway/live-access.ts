import type { Logger } from 'pino';
import type { LiveConnections } from '../proxy/live-connections.ts';
import type { HubDatabase } from '../store/database.ts';

/** Ends live connections whose visitor may no longer be there. */
export interface LiveAccess extends Disposable {
  /** Ends everything of a browser's login at once. */
  endSession(sessionId: string): void;
}

/** How often tokens that have expired are looked for. */
const expiryLookMs = 2_000;
/** How often every connection's right is checked although nothing is known to have changed. */
const sweepIntervalMs = 30_000;
/** The least time between two sweeps: many changes in a row cost one. */
const sweepSpacingMs = 1_000;

/**
 * Creates the watch over live connections: after every change of users, roles, groups or tokens, and
 * now and then for tokens that expire, each connection's right to be there is checked again.
 */
export function createLiveAccess(parts: {
  readonly connections: LiveConnections;
  readonly database: Pick<HubDatabase, 'onChange'>;
  /** Whether a token that admitted somebody still admits to this route. */
  readonly isStillAdmitted: (accessTokenId: string, routePrefix: string) => Promise<boolean>;
  readonly log: Logger;
}): LiveAccess {
  const { connections, log } = parts;
  let isSweeping = false;
  let isDue = false;
  let spacing: NodeJS.Timeout | undefined;

  async function sweep(): Promise<void> {
    isDue = true;
    if (isSweeping || spacing !== undefined) return;
    isSweeping = true;
    isDue = false;
    try {
      await checkAll();
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

  async function checkAll(): Promise<void> {
    const pairs = new Map<string, { id: string; prefix: string }>();
    for (const { tags } of connections.list()) {
      const { accessTokenId: id, route } = tags;
      if (id !== undefined) pairs.set(`${id} ${route.prefix}`, { id, prefix: route.prefix });
    }
    for (const { id, prefix } of pairs.values()) {
      if (await parts.isStillAdmitted(id, prefix)) continue;
      const closed = connections.closeWhere(
        (tags) => tags.accessTokenId === id && tags.route.prefix === prefix,
        'access_revoked',
      );
      log.info({ route: prefix, closed }, 'closed connections whose access was revoked');
    }
  }

  const stopListening = parts.database.onChange((subject) => {
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
  const expiryTimer = setInterval(endExpired, expiryLookMs);
  expiryTimer.unref();

  return {
    endSession,
    [Symbol.dispose]() {
      clearInterval(timer);
      clearInterval(expiryTimer);
      clearTimeout(spacing);
      stopListening();
    },
  };
}
