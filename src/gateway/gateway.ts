import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { deny, toAnswer } from '../client/decision.ts';
import { HubError } from '../errors.ts';
import { writeAnswer } from '../http/answer.ts';
import { type CanonicalPath, canonicalPath } from '../http/canonical-path.ts';
import { type ClientAddressReader, forwardedHostProblem } from '../http/client-address.ts';
import type { ErrorAnswers } from '../http/error-answers.ts';
import { hostnameOf, hostProblem } from '../http/host-header.ts';
import type { Forwarder, ForwardOptions } from '../proxy/forwarder.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteMatch, RouteTable } from '../proxy/route-table.ts';
import type { WebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import { text } from '../texts/text.ts';
import type { Arrivals } from './arrivals.ts';
import { hasDoor } from './door.ts';
import type { ForwardAuth } from './forward-auth.ts';
import type { Authorized, GateDecision, Gatekeeper } from './gatekeeper.ts';
import {
  ambiguousPath,
  asHubError,
  behindProxy,
  hopOptions,
  loginNeeded,
  nothingHere,
  outdated,
  sessionIdOf,
  showsHubToken,
  visitorOf,
} from './gateway-answers.ts';
import type { HopForwarder } from './hop-forwarder.ts';
import type { HostRefusal, HostRules } from './host-rules.ts';
import { checkRules, isInGroups, notInGroups, type UsersOnly } from './rule-check.ts';
import type { Traffic, Visitor } from './traffic.ts';

/** The entry to everything behind the hub. */
export interface Gateway {
  /** Takes a request that belongs to a route; false leaves it to the hub's own pages. */
  handleRequest(req: IncomingMessage, res: ServerResponse): boolean;
  /** Takes every upgrade: nothing of the hub itself speaks WebSocket. */
  handleUpgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

export function createGateway(deps: {
  readonly routes: RouteTable;
  /** Undefined where all routes have one origin. */
  readonly hostRules: HostRules | undefined;
  /** Undefined where all routes have one origin. */
  readonly arrivals: Pick<Arrivals, 'finish'> | undefined;
  /** Before routes with `access: gateway`. */
  readonly guard: Gatekeeper;
  /** For apps that another proxy forwards to. */
  readonly forwardAuth: ForwardAuth;
  /** Before users' servers that check their visitors themselves. */
  readonly door: Gatekeeper;
  readonly forwarder: Forwarder;
  readonly webSockets: WebSocketForwarder;
  /** For routes that lead to another instance of the hub; without it there are none. */
  readonly hops: HopForwarder | undefined;
  readonly clientAddress: ClientAddressReader;
  readonly answers: ErrorAnswers;
  readonly traffic: Traffic;
  /**
   * The page for a service or server that is known but cannot answer yet; it tries again by itself. Without it such
   * a request is left to the hub.
   */
  readonly renderNotReadyPage?: (
    route: Route,
    req: IncomingMessage,
  ) => { readonly html: string; readonly error: HubError };
  /** Takes a WebSocket for which there is no route; without it there is none. */
  readonly leaveUpgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
  /** Whether what is known of visitors is too old to admit anyone. */
  readonly isOutdated?: () => boolean;
  /** The name of the user whose login has a session id, while it is open. */
  readonly userOfSession: (sessionId: string) => Promise<string | undefined>;
}): Gateway {
  const { routes, hostRules, guard, door, forwardAuth, forwarder, webSockets } = deps;
  const { hops, arrivals, clientAddress, answers, traffic } = deps;
  const { renderNotReadyPage, leaveUpgrade } = deps;
  const { isOutdated = () => false } = deps;

  function forward(
    req: IncomingMessage,
    res: ServerResponse,
    route: Route,
    path: string,
    authorized: Authorized | undefined,
    groups?: readonly string[],
  ): void {
    forwarder.forward(req, res, forwardOptions(req, route, path, authorized, groups));
  }

  function forwardOptions(
    req: IncomingMessage,
    route: Route,
    path: string,
    authorized: Authorized | undefined,
    groups?: readonly string[],
  ): ForwardOptions {
    const client = clientAddress(req);
    if (authorized === undefined) {
      const stripAuthorization = showsHubToken(req, route);
      return { route, path, client, sessionId: sessionIdOf(req, route), stripAuthorization };
    }
    return {
      route,
      path,
      client,
      headersToAdd: authorized.headers,
      sessionId: authorized.sessionId,
      userName: authorized.userName,
      accessTokenId: authorized.accessTokenId,
      expiresAtMs: authorized.expiresAtMs,
      groups,
      stripAuthorization: authorized.stripAuthorization,
    };
  }

  /** Finds the route of a path on the host that was asked for. */
  function findRoute(req: IncomingMessage, path: CanonicalPath): RouteMatch | undefined {
    return routes.match(path, routes.hasHosts ? hostnameOf(clientAddress(req).host) : undefined);
  }

  /** The decision of a keeper, with what a rule asks beyond it. */
  function withRule(decision: GateDecision, rule: UsersOnly): GateDecision {
    if (decision.kind !== 'authorized' || isInGroups(decision, rule)) return decision;
    return deny(notInGroups(), {
      ...(decision.userName !== undefined && { user: { kind: 'user', name: decision.userName } }),
    });
  }

  /** Who decides at a route that not everyone may pass. */
  function keeperOf(route: Route): Gatekeeper | undefined {
    if (route.access === 'gateway') return guard;
    return hasDoor(route) ? door : undefined;
  }

  /** Whose WebSocket it is where the gateway knows no visitor: for the limit of one user, not a right. */
  function userBehind(
    { owner }: Route,
    sessionId: string | undefined,
  ): string | undefined | Promise<string | undefined> {
    if (owner.kind === 'server') return owner.userName;
    if (sessionId === undefined) return undefined;
    return deps.userOfSession(sessionId);
  }

  /** Counts a request that the gateway answers in place of the upstream. */
  function note(
    req: IncomingMessage,
    res: ServerResponse,
    route: Route | undefined,
    visitor: Visitor = {},
  ): void {
    const closed = () => traffic.requestClosed(req, res, route, visitor);
    // The client may have left while it was decided whether it may pass.
    if (res.closed) closed();
    else res.once('close', closed);
  }

  function answerDecision(
    req: IncomingMessage,
    res: ServerResponse,
    decision: Exclude<GateDecision, Authorized>,
  ): void {
    if (decision.kind !== 'denied') {
      writeAnswer(req, res, toAnswer(decision, false));
      return;
    }
    for (const [name, value] of Object.entries(decision.headers)) res.setHeader(name, value);
    if (decision.setCookies.length > 0) res.setHeader('Set-Cookie', [...decision.setCookies]);
    answers.respond(req, res, decision.error);
  }

  function answerMisdirected(
    req: IncomingMessage,
    res: ServerResponse,
    { error, location }: HostRefusal,
  ): void {
    if (location === undefined) {
      answers.respond(req, res, error);
      return;
    }
    const headers = { 'cache-control': 'no-store', 'referrer-policy': 'same-origin', location };
    writeAnswer(req, res, { status: 302, headers, body: '' });
  }

  return {
    handleRequest(req, res) {
      const wrongHost = hostProblem(req);
      if (wrongHost !== undefined) {
        note(req, res, undefined);
        answers.respond(req, res, wrongHost, { isExpected: true });
        return true;
      }
      const path = canonicalPath(req.url ?? '');
      if (path === undefined) {
        note(req, res, undefined);
        answers.respond(req, res, ambiguousPath());
        return true;
      }
      if (forwardAuth.handle(req, res, path.pathname)) {
        note(req, res, undefined);
        return true;
      }
      // Not before: a proxy that asks names the host of an app there, and in Host that of the hub.
      const otherHost = forwardedHostProblem(req, clientAddress);
      if (otherHost !== undefined) {
        note(req, res, undefined);
        answers.respond(req, res, otherHost, { isExpected: true });
        return true;
      }
      const match = findRoute(req, path);
      if (match?.kind === 'ambiguous' || match?.kind === 'nowhere') {
        note(req, res, undefined);
        answers.respond(req, res, match.kind === 'nowhere' ? nothingHere() : ambiguousPath());
        return true;
      }
      const arrived = match === undefined ? arrivals?.finish(req, path) : undefined;
      if (arrived !== undefined) {
        note(req, res, undefined);
        answerDecision(req, res, arrived);
        return true;
      }
      const misdirected = hostRules?.check(req, path, match?.route);
      if (misdirected !== undefined) {
        note(req, res, match?.route);
        answerMisdirected(req, res, misdirected);
        return true;
      }
      if (match === undefined) return false;
      if (match.kind === 'redirect') {
        note(req, res, match.route);
        writeAnswer(req, res, { status: 308, headers: { location: match.path }, body: '' });
        return true;
      }
      const { route } = match;
      const rule = checkRules(route, path, req.method ?? 'GET', () => clientAddress(req).address);
      if (rule instanceof HubError) {
        note(req, res, route);
        answers.respond(req, res, rule, { isExpected: true });
        return true;
      }
      if (!route.isReady) {
        if (renderNotReadyPage === undefined) return false;
        note(req, res, route);
        const { html, error } = renderNotReadyPage(route, req);
        answers.respond(req, res, error, { page: () => html, isExpected: true });
        return true;
      }
      if (route.via !== undefined && hops !== undefined) {
        hops.forward(req, res, hopOptions(route, route.via, match.path));
        return true;
      }
      const keeper = keeperOf(route);
      if (rule === 'everyone' && route.isBehindProxy) {
        note(req, res, route);
        answers.respond(req, res, behindProxy(), { isExpected: true });
        return true;
      }
      if (keeper === undefined || rule === 'everyone') {
        forward(req, res, route, match.path, undefined);
        return true;
      }
      if (isOutdated()) {
        note(req, res, route);
        answers.respond(req, res, outdated(), { isExpected: true });
        return true;
      }
      const { groups } = rule;
      const known = route.isBehindProxy ? undefined : keeper.known(route, req);
      if (known !== undefined && isInGroups(known, rule)) {
        forward(req, res, route, match.path, known, groups);
        return true;
      }
      keeper.decide(route, req).then(
        (decided) => {
          const decision = withRule(decided, rule);
          if (decision.kind === 'authorized' && route.isBehindProxy) {
            note(req, res, route, visitorOf(decision));
            answers.respond(req, res, behindProxy(), { isExpected: true });
          } else if (decision.kind === 'authorized') {
            forward(req, res, route, match.path, decision, groups);
          } else {
            note(req, res, route, visitorOf(decision));
            answerDecision(req, res, decision);
          }
        },
        (thrown: unknown) => {
          note(req, res, route);
          answers.respond(req, res, asHubError(thrown));
        },
      );
      return true;
    },

    handleUpgrade(req, socket, head) {
      const wrongHost = hostProblem(req) ?? forwardedHostProblem(req, clientAddress);
      if (wrongHost !== undefined) {
        traffic.followUpgrade(req, socket, undefined);
        answers.respondOnSocket(req, socket, wrongHost);
        return;
      }
      const path = canonicalPath(req.url ?? '');
      const match = path === undefined ? undefined : findRoute(req, path);
      if (path !== undefined && match === undefined && leaveUpgrade !== undefined) {
        leaveUpgrade(req, socket, head);
        return;
      }
      if (path === undefined || match?.kind === 'ambiguous') {
        traffic.followUpgrade(req, socket, undefined);
        answers.respondOnSocket(req, socket, ambiguousPath());
        return;
      }
      if (match?.kind !== 'forward') {
        traffic.followUpgrade(req, socket, undefined);
        answers.respondOnSocket(
          req,
          socket,
          new HubError('not_found', text`There is no WebSocket at this address.`),
        );
        return;
      }
      const { route } = match;
      if (route.isBehindProxy) {
        traffic.followUpgrade(req, socket, route);
        answers.respondOnSocket(req, socket, behindProxy());
        return;
      }
      if (route.via !== undefined && hops !== undefined && route.isReady) {
        hops.forwardUpgrade(req, socket, head, hopOptions(route, route.via, match.path));
        return;
      }
      const visit = traffic.followUpgrade(req, socket, route);
      const misdirected = hostRules?.check(req, path, route);
      if (misdirected !== undefined) {
        answers.respondOnSocket(req, socket, misdirected.error);
        return;
      }
      if (!route.isReady) {
        const error = new HubError('unavailable', text`This is starting; try again.`, {
          retryAfterSeconds: 2,
        });
        answers.respondOnSocket(req, socket, error);
        return;
      }
      const rule = checkRules(route, path, req.method ?? 'GET', () => clientAddress(req).address);
      if (rule instanceof HubError) {
        answers.respondOnSocket(req, socket, rule);
        return;
      }
      const keeper = keeperOf(route);
      if (keeper === undefined || rule === 'everyone') {
        const options = forwardOptions(req, route, match.path, undefined);
        visit.visitor = { sessionId: options.sessionId };
        const userName = userBehind(route, options.sessionId);
        if (typeof userName !== 'object') {
          webSockets.forward(req, socket, head, { ...options, userName });
          return;
        }
        userName.then(
          (name) => webSockets.forward(req, socket, head, { ...options, userName: name }),
          (thrown: unknown) => answers.respondOnSocket(req, socket, asHubError(thrown)),
        );
        return;
      }
      if (isOutdated()) {
        answers.respondOnSocket(req, socket, outdated());
        return;
      }
      keeper.decide(route, req).then(
        (decided) => {
          const decision = withRule(decided, rule);
          visit.visitor = visitorOf(decision);
          if (decision.kind === 'authorized') {
            const options = forwardOptions(req, route, match.path, decision, rule.groups);
            webSockets.forward(req, socket, head, options);
          } else {
            answers.respondOnSocket(
              req,
              socket,
              decision.kind === 'denied' ? decision.error : loginNeeded(),
            );
          }
        },
        (thrown: unknown) => answers.respondOnSocket(req, socket, asHubError(thrown)),
      );
    },
  };
}
