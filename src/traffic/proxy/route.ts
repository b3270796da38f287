import type { RouteLimits } from '../../platform/config/route-limits-schema.ts';
import type { RouteRule } from '../../platform/config/route-rules-schema.ts';
import type { AccessTarget } from '../../platform/protocol/client-id.ts';
import { tokenCookieName } from '../../platform/protocol/cookie-names.ts';
import type { Forwarding } from '../../platform/protocol/identity-headers.ts';
import { type CompiledEdits, compileEdits } from './header-edits.ts';
import { createRouteLimiter, type RouteLimiter } from './route-limiter.ts';
import { createRouteLoad, type RouteLoad } from './route-load.ts';
import { compileRules, type RouteRules } from './route-rules.ts';
import { parseUpstreamAddress, type UpstreamAddress } from './upstream-address.ts';

/** The target of routes that lead nowhere (RFC 2606 §2). */
export const nowhere = 'http://nowhere.invalid';

/**
 * Who checks visitors: the service or server itself, the gateway in its place, or none. `foreign`: another hub, on a
 * host name where no cookie of this one is.
 */
export type RouteAccess = 'service' | 'server' | 'gateway' | 'public' | 'foreign';

/** Whose route it is. */
export type RouteOwner = AccessTarget | { readonly kind: 'extra' };

/** What a route is made of. */
export interface RouteDefinition {
  /** Public path as the hub writes it: encoded, base path included, a slash at both ends. */
  readonly prefix: string;
  /** Host name for which alone the route is, in lower case; for all that have no routes of their own when left out. */
  readonly host?: string | undefined;
  /** Where browsers reach a route that has a host name: scheme, host and port. */
  readonly origin?: string | undefined;
  /** Whether the upstream gets paths without the prefix. */
  readonly stripsPrefix?: boolean | undefined;
  /** For an upstream that looks at names. */
  readonly forwarding?: Forwarding | undefined;
  /** Whether another proxy forwards to the app, and asks about each request: `target` leads nowhere. */
  readonly isBehindProxy?: boolean | undefined;
  /** Who may pass which part, for `access: "gateway"`. */
  readonly rules?: readonly RouteRule[] | undefined;
  /** What it may take. */
  readonly limits?: RouteLimits | undefined;
  /** `http://`, `https://` or `http+unix://%2Fpath`; only the origin counts. */
  readonly target: string;
  readonly access: RouteAccess;
  readonly owner: RouteOwner;
  /** Id of the user's server that it leads to. */
  readonly serverId?: string | undefined;
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
  /** Names the route in its table: its prefix, after its host name if it has one. */
  readonly key: string;
  readonly prefix: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly stripsPrefix: boolean;
  readonly forwarding: Forwarding | undefined;
  /** Host and Origin for the upstream, where those of the visitor would be refused. */
  readonly asked: { readonly host: string; readonly origin: string } | undefined;
  /** Headers, in lower case, that only the hub may send there, beside those that it always sends. */
  readonly identityNames: ReadonlySet<string>;
  /** Undefined where nothing is changed. */
  readonly requestEdits: CompiledEdits | undefined;
  readonly responseEdits: CompiledEdits | undefined;
  readonly isBehindProxy: boolean;
  readonly rules: readonly RouteRule[];
  /** Undefined where there are no rules. */
  readonly judge: RouteRules['judge'] | undefined;
  readonly limits: RouteLimits | undefined;
  /** Undefined where there are no limits. */
  readonly limiter: RouteLimiter | undefined;
  readonly target: string;
  readonly access: RouteAccess;
  readonly owner: RouteOwner;
  /** Undefined for what is no user's server. */
  readonly serverId: string | undefined;
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
  /** When a visitor last sent something that no page sends by itself, by the same clock; -Infinity before the first. */
  lastUseMs: number;
  /** When the upstream last began an answer, by the monotonic clock; -Infinity before its first. */
  lastAnswerMs: number;
  /** Passes to the route that takes its place. */
  readonly load: RouteLoad;
}

/** Throws TypeError for a target that cannot be forwarded to, and for a user's server without its id. */
export function createRoute(
  definition: RouteDefinition,
  nowMs: number,
  load: RouteLoad = createRouteLoad(),
): Route {
  const { prefix, target, access, owner, clientId, upstreamTimeoutMs, isReady = true } = definition;
  const { host, rules = [], forwarding, limits } = definition;
  const upstream = parseUpstreamAddress(target);
  if (owner.kind === 'server' && definition.serverId === undefined) {
    throw new TypeError(`the route ${prefix} does not say to which server it leads`);
  }
  return {
    key: (host ?? '') + prefix,
    prefix,
    host,
    origin: definition.origin,
    stripsPrefix: definition.stripsPrefix ?? false,
    forwarding,
    asked:
      forwarding?.host === 'upstream'
        ? { host: new URL(upstream.origin).host, origin: upstream.origin }
        : undefined,
    identityNames: new Set(
      Object.values(forwarding?.identity_headers ?? {}).flatMap(
        (name) => name?.toLowerCase() ?? [],
      ),
    ),
    requestEdits: compileEdits(forwarding?.headers?.request),
    responseEdits: compileEdits(forwarding?.headers?.response),
    isBehindProxy: definition.isBehindProxy ?? false,
    rules,
    judge: rules.length === 0 ? undefined : compileRules(rules).judge,
    limits,
    limiter: limits && createRouteLimiter(limits),
    target,
    access,
    owner,
    serverId: definition.serverId,
    upstreamTimeoutMs,
    via: definition.via,
    isHop: definition.isHop ?? false,
    upstream,
    clientId,
    cookieName:
      definition.cookieName ?? (clientId === undefined ? undefined : tokenCookieName(clientId)),
    sessionIdAliases: definition.sessionIdAliases ?? [],
    isReady,
    lastActivityMs: nowMs,
    lastUseMs: Number.NEGATIVE_INFINITY,
    lastAnswerMs: Number.NEGATIVE_INFINITY,
    load,
  };
}
