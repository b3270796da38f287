import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { LoginSessions } from '../../identity/sessions/login-sessions.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import type { AccessTarget } from '../../platform/protocol/client-id.ts';
import { concernsRights } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { ConnectionTags, LiveConnections } from '../proxy/live-connections.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { LoginAccess } from './login-access.ts';
import type { RouteAccess } from './route-access.ts';
import { hasServerGuard, type ServerGuardRoute } from './server-guard.ts';

/** How often tokens that have expired, and sessions not seen before, are polled for. */
const pollMs = 2_000;
/** How often every connection's access is checked although nothing is known to have changed. */
const sweepIntervalMs = 30_000;
/** The least time between two sweeps: many changes in a row cost one. */
const sweepSpacingMs = 1_000;

/**
 * Watches over live connections: they end with their login, token or route, and after every change of users,
 * roles or groups each one's access is checked again.
 */
export function createLiveAccess(deps: {
  readonly connections: LiveConnections;
  readonly database: Pick<HubDatabase, 'onChange' | 'now'>;
  readonly routes: Pick<RouteTable, 'onRemove'>;
  readonly access: Pick<RouteAccess, 'isStillGranted'>;
  readonly loginAccess: Pick<LoginAccess, 'isStillGranted'>;
  readonly logins: Pick<LoginSessions, 'onEnd'> & {
    /** Undefined for a session that is not open. */
    find(sessionId: string): Promise<unknown>;
  };
  readonly groupNamesOf: (userName: string) => Promise<readonly string[]>;
  readonly log: Logger;
}): Disposable {
  const { connections, access, loginAccess, log } = deps;
  /**
   * Sessions of connections that the app itself let in, with whether they were open when first polled: the
   * cookie of a visitor whom only the app knows may name anything, and is not a reason to cut them off.
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
      await checkLogins();
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

  const isOpen = async (sessionId: string) => (await deps.logins.find(sessionId)) !== undefined;

  function endSession(sessionId: string): void {
    connections.closeWhere((tags) => tags.sessionId === sessionId, 'session_ended');
  }

  function endExpired(): void {
    const now = deps.database.now();
    connections.closeWhere(
      ({ expiresAtMs }) => expiresAtMs !== undefined && expiresAtMs <= now,
      'access_revoked',
    );
  }

  /** Sessions of live connections that the gateway did not guard. */
  function unguardedSessions(): Set<string> {
    const sessionIds = new Set<string>();
    for (const { tags } of connections.list()) {
      const { accessTokenId, sessionId } = tags;
      if (accessTokenId === undefined && sessionId !== undefined) sessionIds.add(sessionId);
    }
    return sessionIds;
  }

  async function noteSessions(): Promise<void> {
    const sessionIds = unguardedSessions();
    for (const known of wereOpen.keys()) if (!sessionIds.has(known)) wereOpen.delete(known);
    for (const sessionId of sessionIds) {
      if (!wereOpen.has(sessionId)) wereOpen.set(sessionId, await isOpen(sessionId));
    }
  }

  /** Ends the connections of sessions that were open and no longer are: another process ended them. */
  async function checkSessions(): Promise<void> {
    for (const sessionId of unguardedSessions()) {
      if (wereOpen.get(sessionId) !== true || (await isOpen(sessionId))) continue;
      wereOpen.delete(sessionId);
      endSession(sessionId);
    }
  }

  async function checkTokens(): Promise<void> {
    const checks = new Map<string, GuardedTags>();
    for (const { tags } of connections.list()) {
      if (!isGuarded(tags)) continue;
      checks.set(`${tags.accessTokenId} ${tags.route.key} ${tags.groups?.join() ?? ''}`, tags);
    }
    for (const { accessTokenId, route, groups, userName } of checks.values()) {
      const isGranted =
        (await access.isStillGranted(accessTokenId, route.owner)) &&
        (await isInGroups(userName, groups));
      if (isGranted) continue;
      closeRevoked(
        route,
        (tags) => tags.accessTokenId === accessTokenId && tags.groups?.join() === groups?.join(),
      );
    }
  }

  async function isInGroups(
    userName: string | undefined,
    groups: readonly string[] | undefined,
  ): Promise<boolean> {
    if (groups === undefined) return true;
    const own = userName === undefined ? [] : await deps.groupNamesOf(userName);
    return groups.some((group) => own.includes(group));
  }

  /** Ends what the server guard let in for a login whose user has lost the right. */
  async function checkLogins(): Promise<void> {
    const checks = new Map<string, { sessionId: string; route: ServerGuardRoute }>();
    for (const { tags } of connections.list()) {
      const { accessTokenId, sessionId, route } = tags;
      if (accessTokenId !== undefined || sessionId === undefined || !hasServerGuard(route))
        continue;
      checks.set(`${sessionId} ${route.key}`, { sessionId, route });
    }
    for (const { sessionId, route } of checks.values()) {
      if (await loginAccess.isStillGranted(sessionId, route.owner)) continue;
      closeRevoked(route, (tags) => tags.sessionId === sessionId);
    }
  }

  function closeRevoked(
    { key }: Pick<Route, 'key'>,
    isOfVisitor: (tags: ConnectionTags) => boolean,
  ): void {
    const closed = connections.closeWhere(
      (tags) => tags.route.key === key && isOfVisitor(tags),
      'access_revoked',
    );
    log.info({ route: key, closed }, 'closed connections with revoked access');
  }

  using started = new DisposableStack();
  started.defer(
    deps.database.onChange((subject) => {
      if (subject.kind === 'session_ended') endSession(subject.sessionId);
      else if (subject.kind === 'tokens_revoked') {
        connections.closeWhere(
          ({ accessTokenId }) => subject.tokenIds.includes(accessTokenId ?? ''),
          'access_revoked',
        );
      } else if (concernsRights(subject)) void sweep();
    }),
  );
  started.defer(deps.logins.onEnd(endSession));
  started.defer(
    deps.routes.onRemove((route, replacement) => {
      // What moved may finish what it is doing where it was; what is guarded otherwise now may not.
      if (isGuardedAlike(route, replacement)) connections.endStreams('route_removed', route);
      else connections.closeWhere((tags) => tags.route === route, 'route_removed');
    }),
  );
  started.use(
    createPeriodic({
      intervalMs: pollMs,
      async work() {
        endExpired();
        await noteSessions();
      },
      onError: (error) =>
        log.warn({ err: error }, 'could not look up the sessions of live connections'),
    }),
  );
  const sweeping = setInterval(() => void sweep(), sweepIntervalMs);
  sweeping.unref();
  started.defer(() => {
    clearInterval(sweeping);
    clearTimeout(spacing);
  });
  return started.move();
}

function isGuardedAlike(one: Route, other: Route | undefined): boolean {
  return other?.access === one.access && isDeepStrictEqual(barsOf(other), barsOf(one));
}

/** Of a connection that the gateway let in by a token. */
type GuardedTags = ConnectionTags & {
  readonly accessTokenId: string;
  readonly route: { readonly owner: AccessTarget };
};

function isGuarded(tags: ConnectionTags): tags is GuardedTags {
  return tags.accessTokenId !== undefined && tags.route.owner.kind !== 'extra';
}

/** What keeps visitors out beside their access. */
function barsOf({ rules, limits }: Route) {
  return [rules, limits?.allow_addresses, limits?.deny_addresses];
}
