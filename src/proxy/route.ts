import type { AccessTarget } from '../protocol/access-scope.ts';
import { tokenCookieName } from '../protocol/cookie-names.ts';
import { parseUpstreamAddress, type UpstreamAddress } from './upstream-address.ts';

/** Who checks visitors: the service or server itself, the gateway in its place, or none. */
export type RouteAccess = 'service' | 'server' | 'gateway' | 'public';

/** Whose route it is. */
export type RouteOwner = AccessTarget | { readonly kind: 'extra' };

/** What a route is made of. */
export interface RouteDefinition {
  /** Public path as the hub writes it: encoded, base path included, a slash at both ends. */
  readonly prefix: string;
  /** `http://`, `https://` or `http+unix://%2Fpath`; only the origin counts. */
  readonly target: string;
  readonly access: RouteAccess;
  readonly owner: RouteOwner;
  /** Name of the token cookie; that of `clientId` when left out. */
  readonly cookieName?: string | undefined;
  /** Further names under which browsers hold the session id, in lower case: none when left out. */
  readonly sessionIdAliases?: readonly string[] | undefined;
  /** OAuth client of the service or server; what the gateway plays for `access: "gateway"`. */
  readonly clientId?: string | undefined;
  /** Milliseconds the upstream has to begin its answer, 0 for ever; `Proxy.upstream_timeout` when left out. */
  readonly upstreamTimeoutMs?: number | undefined;
  /** False while the upstream is known but cannot answer yet: visitors get 503. */
  readonly isReady?: boolean | undefined;
  /** Id of the instance of the hub that alone reaches the target: requests are passed on to it. */
  readonly via?: string | undefined;
  /** Whether the target is another instance, which checks visitors: headers pass as they are. */
  readonly isHop?: boolean | undefined;
}

/** An entry of the proxy table. */
export interface Route {
  readonly prefix: string;
  readonly target: string;
  readonly access: RouteAccess;
  readonly owner: RouteOwner;
  readonly upstreamTimeoutMs: number | undefined;
  readonly via: string | undefined;
  readonly isHop: boolean;
  readonly upstream: UpstreamAddress;
  readonly clientId: string | undefined;
  /** Undefined where there is no OAuth client, as for extra routes. */
  readonly cookieName: string | undefined;
  /** Further names of the cookie with the session id: as little for upstreams as the first. */
  readonly sessionIdAliases: readonly string[];
  /** Changed by `RouteTable.setReady` only. */
  isReady: boolean;
  /** When traffic last went either way, by the monotonic clock; kept by the forwarders. */
  lastActivityMs: number;
  /** When the upstream last began an answer, by the monotonic clock; -Infinity before its first. */
  lastAnswerMs: number;
}

/** Throws TypeError for a target that cannot be forwarded to. */
export function createRoute(definition: RouteDefinition, nowMs: number): Route {
  const { prefix, target, access, owner, clientId, upstreamTimeoutMs, isReady = true } = definition;
  return {
    prefix,
    target,
    access,
    owner,
    upstreamTimeoutMs,
    via: definition.via,
    isHop: definition.isHop ?? false,
    upstream: parseUpstreamAddress(target),
    clientId,
    cookieName:
      definition.cookieName ?? (clientId === undefined ? undefined : tokenCookieName(clientId)),
    sessionIdAliases: definition.sessionIdAliases ?? [],
    isReady,
    lastActivityMs: nowMs,
    lastAnswerMs: Number.NEGATIVE_INFINITY,
  };
}
