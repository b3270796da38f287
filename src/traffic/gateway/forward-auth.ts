import type { IncomingMessage, ServerResponse } from 'node:http';
import { deny, type RequestLike, toAnswer } from '../../client/decision.ts';
import { HubError } from '../../platform/errors.ts';
import { type Answer, writeAnswer } from '../../platform/http/answer.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import {
  type ClientAddressReader,
  canonicalPath,
  hostnameOf,
} from '../../platform/http/request-address.ts';
import { identityHeaderNames } from '../../platform/protocol/identity-headers.ts';
import { text } from '../../platform/texts/text.ts';
import { methodProblem } from '../proxy/forwarder.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import {
  type AccessPolicy,
  type Authorized,
  checkRules,
  type GateDecision,
  isInGroups,
  notInGroups,
} from './access-policy.ts';
import { type ClaimKind, contradicting, readClaim } from './forward-auth-claim.ts';
import { ambiguousPath, asHubError, outdated } from './gateway-answers.ts';
import type { ForwardAuthWay } from './verdict.ts';

/**
 * Tells another proxy whether it may pass a request on: nginx (`auth_request`), Traefik (ForwardAuth) and Caddy
 * (`forward_auth`). The guard decides as it does for what the gateway forwards itself.
 */
export interface ForwardAuth {
  answer(req: IncomingMessage, res: ServerResponse, way: ForwardAuthWay): void;
}

/** What the proxy is asked for by its visitor. */
interface Asked {
  readonly route: Route;
  readonly request: RequestLike & { readonly method: string; readonly url: string };
  readonly pathname: string;
}

const methodName = /^[A-Z][A-Z-]{0,30}$/;

export function createForwardAuth(deps: {
  readonly routes: Pick<RouteTable, 'match' | 'hasHost'>;
  readonly guard: AccessPolicy;
  readonly clientAddress: ClientAddressReader;
  /** `Proxy.forward_auth_headers`. */
  readonly kind: ClaimKind;
  readonly answers: ErrorAnswers;
  readonly isOutdated: () => boolean;
}): ForwardAuth {
  const { routes, guard, clientAddress, answers } = deps;

  /** What is asked about. Throws HubError for what no proxy of the operator would ask. */
  function read(req: IncomingMessage): Asked {
    if (!clientAddress(req).isTrustedProxy) throw notTrusted();
    const { method, host, hostname, url } = readClaim(req.headers, deps.kind);
    const ownHost = hostnameOf(req.headers.host ?? '') ?? '';
    // Where a proxy passes Host on, that is by which it has chosen the app.
    if (ownHost !== hostname && routes.hasHost(ownHost)) throw contradicting();
    const path = canonicalPath(url);
    if (path === undefined || !methodName.test(method)) throw ambiguousPath();
    const wrongMethod = methodProblem(method);
    if (wrongMethod !== undefined) throw wrongMethod;
    const match = routes.match(path, hostname);
    if (match?.kind === 'ambiguous') throw ambiguousPath();
    if (match === undefined || match.kind === 'nowhere' || !match.route.isBehindProxy) {
      throw unknownApp();
    }
    const headers = req.headers.host === host ? req.headers : { ...req.headers, host };
    return { route: match.route, request: { method, url, headers }, pathname: path.pathname };
  }

  function allow(
    req: IncomingMessage,
    res: ServerResponse,
    { forwarding }: Route,
    authorized?: Authorized,
  ): void {
    const headers: Record<string, string> = { 'cache-control': 'no-store' };
    // Empty where no one is known: a proxy that copies them then replaces what its client sent.
    for (const name of [...identityHeaderNames(forwarding?.identity_headers), 'X-Hub-Assertion']) {
      headers[name.toLowerCase()] = '';
    }
    const given = authorized?.headers ?? [];
    for (let index = 0; index + 1 < given.length; index += 2) {
      headers[given[index]?.toLowerCase() ?? ''] = given[index + 1] ?? '';
    }
    writeAnswer(req, res, { status: 200, headers, body: '' });
  }

  function answer(
    req: IncomingMessage,
    res: ServerResponse,
    decision: GateDecision,
    route: Route,
    way: ForwardAuthWay,
  ): void {
    if (decision.kind === 'authorized') {
      allow(req, res, route, decision);
    } else if (decision.kind === 'denied') {
      for (const [name, value] of Object.entries(decision.headers)) res.setHeader(name, value);
      if (decision.setCookies.length > 0) res.setHeader('set-cookie', [...decision.setCookies]);
      refuse(req, res, decision.error, way);
    } else if (way === 'status') {
      refuse(req, res, new HubError('unauthenticated', text`Log in first.`), way);
    } else {
      writeAnswer(req, res, notAllowed(toAnswer(decision, false)));
    }
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    error: HubError,
    way: ForwardAuthWay,
  ): void {
    const shown = way === 'status' && isOfRequest(error) ? closedTo(error) : error;
    answers.respond(req, res, shown, { isExpected: true });
  }

  return {
    answer(req, res, way) {
      try {
        const { route, request, pathname: asked } = read(req);
        const clientOf = () => clientAddress(req);
        const rule = checkRules(route, { pathname: asked }, request.method, clientOf);
        if (rule instanceof HubError) throw rule;
        if (rule === 'everyone') {
          allow(req, res, route);
          return;
        }
        if (deps.isOutdated()) throw outdated();
        const known = guard.known(route, request);
        if (known !== undefined && isInGroups(known, rule)) {
          allow(req, res, route, known);
          return;
        }
        guard.decide(route, request).then(
          (decision) => {
            const isRefused = decision.kind === 'authorized' && !isInGroups(decision, rule);
            answer(req, res, isRefused ? deny(notInGroups()) : decision, route, way);
          },
          (thrown: unknown) => refuse(req, res, asHubError(thrown), way),
        );
      } catch (thrown) {
        refuse(req, res, asHubError(thrown), way);
      }
    },
  };
}

/** A page is no permission, so it does not look like one. */
function notAllowed(answer: Answer): Answer {
  return answer.status < 300 ? { ...answer, status: 403 } : answer;
}

/** nginx takes any other refusal for a failure of its own. */
function isOfRequest({ code }: HubError): boolean {
  return code === 'invalid_path' || code === 'bad_request' || code === 'method_not_allowed';
}

function closedTo({ shown: { message, hint } }: HubError): HubError {
  return new HubError('forbidden', message, { ...(hint !== undefined && { hint }) });
}

function notTrusted(): HubError {
  return new HubError('forbidden', text`Only a proxy that the hub trusts may ask this.`, {
    hint: text`Its address has to be in Hub.trusted_proxies.`,
  });
}

function unknownApp(): HubError {
  return new HubError('forbidden', text`The hub knows of no app at this address.`, {
    hint: text`Its host and path have to be in Proxy.extra_routes, with "access": "forward-auth".`,
  });
}
