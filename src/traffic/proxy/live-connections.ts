import { TransientSet } from '../../platform/concurrency/transient-set.ts';
import type { ClientAddress } from '../../platform/http/request-address.ts';
import type { Route } from './route.ts';

/** Why a live connection is closed from the hub's side. */
export type CloseReason = 'session_ended' | 'access_revoked' | 'route_removed' | 'shutting_down';

/** Whom and what a live connection belongs to. */
export interface ConnectionTags {
  readonly route: Route;
  /** Whose: `host` is the one that was asked for, with its port if any. */
  readonly client?: Pick<ClientAddress, 'host' | 'address'> | undefined;
  /** The browser's login session. */
  readonly sessionId?: string | undefined;
  readonly userName?: string | undefined;
  /** Groups in one of which the user had to be. */
  readonly groups?: readonly string[] | undefined;
  readonly accessTokenId?: string | undefined;
  /** The OAuth client that came with that token. */
  readonly clientId?: string | undefined;
  /** When that token ends, in milliseconds since 1970. */
  readonly expiresAtMs?: number | undefined;
}

/** A forwarded request or WebSocket that is still open. */
export interface LiveConnection {
  readonly kind: 'http' | 'websocket';
  readonly tags: ConnectionTags;
  close(reason: CloseReason): void;
  /** Ends what would go on for ever, a WebSocket or an event stream; else nothing. */
  endStream(reason: CloseReason): void;
}

/** Every connection the forwarders hold open. */
export interface LiveConnections {
  add(connection: LiveConnection): void;
  delete(connection: LiveConnection): void;
  /** Closes at once what the predicate picks, and returns how many those were. */
  closeWhere(predicate: (tags: ConnectionTags) => boolean, reason: CloseReason): number;
  /** Ends WebSockets and event streams in good order, all or those of a route. */
  endStreams(reason: CloseReason, route?: Route): void;
  list(): Iterable<LiveConnection>;
  readonly size: number;
}

/** One registry serves the HTTP and the WebSocket forwarder. */
export function createLiveConnections(): LiveConnections {
  const connections = new TransientSet<LiveConnection>();
  return {
    add: (connection) => connections.add(connection),
    delete: (connection) => connections.delete(connection),
    closeWhere(predicate, reason) {
      const chosen = [...connections].filter(({ tags }) => predicate(tags));
      for (const connection of chosen) connection.close(reason);
      return chosen.length;
    },
    endStreams(reason, route) {
      for (const connection of connections) {
        if (route === undefined || connection.tags.route === route) connection.endStream(reason);
      }
    },
    list: () => connections,
    get size() {
      return connections.size;
    },
  };
}
