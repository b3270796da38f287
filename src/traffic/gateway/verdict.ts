import type { IncomingMessage } from 'node:http';
import { deny, toAnswer } from '../../client/decision.ts';
import { HubError } from '../../platform/errors.ts';
import type { Answer } from '../../platform/http/answer.ts';
import {
  type ClientAddressReader,
  canonicalPath,
  forwardedHostProblem,
  hostnameOf,
  hostProblem,
} from '../../platform/http/request-address.ts';
import type { ForwardOptions } from '../proxy/forwarder.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import {
  type AccessPolicy,
  type Authorized,
  checkRules,
  type GateDecision,
  isInGroups,
  notInGroups,
  type UsersOnly,
} from './access-policy.ts';
import type { CrossOriginLogin } from './cross-origin-login.ts';
import {
  ambiguousPath,
  asHubError,
  behindProxy,
  loginNeeded,
  nothingHere,
  noWebSocket,
  outdated,
  sessionIdOf,
  showsHubToken,
  visitorOf,
} from './gateway-answers.ts';
import type { HopOptions } from './hop-forwarder.ts';
import type { HostRefusal, HostRules } from './host-rules.ts';
import { type ProtectedResources, wellKnown } from './protected-resources.ts';
import { hasServerGuard } from './server-guard.ts';
import type { Visitor } from './traffic.ts';

/** The gateway answers itself. */
export interface Answered {
  readonly kind: 'answer';
  /** Where the request would have gone. */
  readonly route: Route | undefined;
  readonly visitor?: Visitor;
  /** Why; what a WebSocket is refused with, and a request where `answer` is not given. */
  readonly error: HubError;
  /** What a request is answered in place of the error. */
  readonly answer?: Answer;
  /** For the answer with the error, by lower-case name. */
  readonly headers?: Answer['headers'];
  /** In place of the usual error page. */
  readonly page?: string;
  /** Whether the error need not be logged. */
  readonly isExpected?: boolean;
}

/** The request goes to its upstream. */
export interface Forwarded {
  readonly kind: 'forward';
  readonly options: ForwardOptions;
  /** Whether it passed without being asked who it is from. */
  readonly isUnasked: boolean;
}

/** How another proxy is answered. `redirects`: a browser may be sent to the login. nginx takes 2xx, 401 and 403 only. */
export type ForwardAuthWay = 'redirects' | 'status';

/** Its two addresses, below the path of the hub's pages. */
const forwardAuthWays: ReadonlyMap<string, ForwardAuthWay> = new Map([
  ['forward-auth', 'redirects'],
  ['auth-request', 'status'],
]);

const forwardAuthWayOf = (pathname: string, hubPath: string): ForwardAuthWay | undefined =>
  pathname.startsWith(hubPath) ? forwardAuthWays.get(pathname.slice(hubPath.length)) : undefined;

/** Whether a request asks about another, a WebSocket perhaps: then its upgrade is not its own. */
export function isForwardAuth({ url = '' }: IncomingMessage, hubPath: string): boolean {
  return forwardAuthWayOf(url.split('?', 1)[0] ?? '', hubPath) !== undefined;
}

/** What becomes of a request or of a WebSocket. */
export type Verdict =
  | Answered
  | Forwarded
  /** Another instance of the hub decides. */
  | { readonly kind: 'hop'; readonly options: HopOptions }
  /** Another proxy asks about a request of its own. */
  | { readonly kind: 'forward-auth'; readonly way: ForwardAuthWay }
  /** It belongs to no route: the hub's own pages and API. */
  | { readonly kind: 'hub' };

/** Decides, and changes nothing. A promise where the visitor has to be looked up. */
export type VerdictFor = (req: IncomingMessage) => Verdict | Promise<Answered | Forwarded>;

/** What the verdict depends on. */
export interface VerdictParts {
  readonly routes: RouteTable;
  /** Undefined where all routes have one origin. */
  readonly hostRules: HostRules | undefined;
  /** Undefined where all routes have one origin. */
  readonly crossOriginLogin: Pick<CrossOriginLogin, 'finish'> | undefined;
  /** Before routes with `access: gateway`. */
  readonly guard: AccessPolicy;
  /** Before users' servers that check their visitors themselves. */
  readonly serverGuard: AccessPolicy;
  /** Path of the hub's pages, a slash at its end. */
  readonly hubPath: string;
  readonly resources: Pick<ProtectedResources, 'metadataFor'>;
  /** Whether there are other instances. */
  readonly hasHops: boolean;
  readonly clientAddress: ClientAddressReader;
  /**
   * The page for a service or server that is known but cannot answer yet; it tries again by itself. Without it such
   * a request is left to the hub.
   */
  readonly renderNotReadyPage?: (
    route: Route,
    req: IncomingMessage,
  ) => { readonly html: string; readonly error: HubError };
  /** Whether what is known of visitors is too old to admit anyone. */
  readonly isOutdated?: () => boolean;
}

export function createVerdict(parts: VerdictParts): VerdictFor {
  const {
    routes,
    hostRules,
    crossOriginLogin,
    guard,
    serverGuard,
    hubPath,
    resources,
    hasHops,
    clientAddress,
  } = parts;
  const { renderNotReadyPage, isOutdated = () => false } = parts;

  /** Who decides at a route that not everyone may pass. */
  function policyOf(route: Route): AccessPolicy | undefined {
    if (route.access === 'gateway') return guard;
    return hasServerGuard(route) ? serverGuard : undefined;
  }

  function forwardUnasked(req: IncomingMessage, route: Route, path: string): Forwarded {
    const options = {
      route,
      path,
      client: clientAddress(req),
      sessionId: sessionIdOf(req, route),
      stripAuthorization: showsHubToken(req, route),
    };
    return { kind: 'forward', options, isUnasked: true };
  }

  function forwardFor(
    req: IncomingMessage,
    route: Route,
    path: string,
    authorized: Authorized,
    groups: readonly string[] | undefined,
  ): Forwarded {
    const options = {
      route,
      path,
      client: clientAddress(req),
      headersToAdd: authorized.headers,
      sessionId: authorized.sessionId,
      userName: authorized.userName,
      accessTokenId: authorized.accessTokenId,
      clientId: authorized.clientId,
      expiresAtMs: authorized.expiresAtMs,
      groups,
      stripAuthorization: authorized.stripAuthorization,
    };
    return { kind: 'forward', options, isUnasked: false };
  }

  /** Once it is known where a request goes and that anyone must be asked who they are. */
  function verdictOnVisitor(
    req: IncomingMessage,
    { route, path }: { readonly route: Route; readonly path: string },
    { policy, rule }: { readonly policy: AccessPolicy; readonly rule: UsersOnly },
  ): Forwarded | Promise<Answered | Forwarded> {
    const { groups } = rule;
    const known = route.isBehindProxy ? undefined : policy.known(route, req);
    if (known !== undefined && isInGroups(known, rule)) {
      return forwardFor(req, route, path, known, groups);
    }
    return policy.decide(route, req).then(
      (decided) => {
        const decision = withRule(decided, rule);
        if (decision.kind !== 'authorized') return answeredDecision(decision, route);
        return route.isBehindProxy
          ? refused(behindProxy(), route, { visitor: visitorOf(decision), isExpected: true })
          : forwardFor(req, route, path, decision, groups);
      },
      (thrown: unknown) => refused(asHubError(thrown), route),
    );
  }

  return (req) => {
    const wrongHost = hostProblem(req);
    if (wrongHost !== undefined) return refused(wrongHost, undefined, { isExpected: true });
    const path = canonicalPath(req.url ?? '');
    if (path === undefined) return refused(ambiguousPath(), undefined);
    const way = forwardAuthWayOf(path.pathname, hubPath);
    if (way !== undefined) return { kind: 'forward-auth', way };
    // Not before: a proxy that asks names the host of an app there, and in Host that of the hub.
    const otherHost = forwardedHostProblem(req, clientAddress);
    if (otherHost !== undefined) return refused(otherHost, undefined, { isExpected: true });
    const host = routes.hasHosts ? hostnameOf(clientAddress(req).host) : undefined;
    const metadata = path.pathname.includes(wellKnown)
      ? resources.metadataFor(req.method, path, host)
      : undefined;
    if (metadata !== undefined) return refused(noWebSocket(), undefined, { answer: metadata });
    const match = routes.match(path, host);
    if (match?.kind === 'ambiguous') return refused(ambiguousPath(), undefined);
    if (match?.kind === 'nowhere') return refused(nothingHere(), undefined);
    const arrived = match === undefined ? crossOriginLogin?.finish(req, path) : undefined;
    if (arrived !== undefined) return answeredDecision(arrived, undefined);
    const misdirected = hostRules?.check(req, path, match?.route);
    if (misdirected !== undefined) return answeredMisdirected(misdirected, match?.route);
    if (match === undefined) return { kind: 'hub' };
    const { route } = match;
    if (match.kind === 'redirect') {
      const answer = { status: 308, headers: { location: match.path }, body: '' };
      return refused(noWebSocket(), route, { answer });
    }
    const rule = checkRules(route, path, req.method ?? 'GET', () => clientAddress(req));
    if (rule instanceof HubError) return refused(rule, route, { isExpected: true });
    if (!route.isReady) {
      if (renderNotReadyPage === undefined) return { kind: 'hub' };
      const { html, error } = renderNotReadyPage(route, req);
      return refused(error, route, { page: html, isExpected: true });
    }
    if (route.via !== undefined && hasHops) {
      const { via, upstreamTimeoutMs } = route;
      return { kind: 'hop', options: { via, path: match.path, upstreamTimeoutMs } };
    }
    if (rule === 'everyone' && route.isBehindProxy) {
      return refused(behindProxy(), route, { isExpected: true });
    }
    const policy = policyOf(route);
    if (policy === undefined || rule === 'everyone') return forwardUnasked(req, route, match.path);
    if (isOutdated()) return refused(outdated(), route, { isExpected: true });
    return verdictOnVisitor(req, match, { policy, rule });
  };
}

function refused(
  error: HubError,
  route: Route | undefined,
  rest: Partial<Omit<Answered, 'kind' | 'route' | 'error'>> = {},
): Answered {
  return { kind: 'answer', route, error, ...rest };
}

/** The decision of a keeper, with what a rule asks beyond it. */
function withRule(decision: GateDecision, rule: UsersOnly): GateDecision {
  if (decision.kind !== 'authorized' || isInGroups(decision, rule)) return decision;
  return deny(notInGroups(), {
    ...(decision.userName !== undefined && { user: { kind: 'user', name: decision.userName } }),
  });
}

function answeredDecision(
  decision: Exclude<GateDecision, Authorized>,
  route: Route | undefined,
): Answered {
  const visitor = visitorOf(decision);
  if (decision.kind !== 'denied') {
    return refused(loginNeeded(), route, { visitor, answer: toAnswer(decision, false) });
  }
  const { error, headers, setCookies } = decision;
  return refused(error, route, {
    visitor,
    headers: { ...headers, ...(setCookies.length > 0 && { 'set-cookie': [...setCookies] }) },
  });
}

function answeredMisdirected({ error, location }: HostRefusal, route: Route | undefined): Answered {
  if (location === undefined) return refused(error, route);
  const headers = { 'cache-control': 'no-store', 'referrer-policy': 'same-origin', location };
  return refused(error, route, { answer: { status: 302, headers, body: '' } });
}
