import type { IncomingMessage, ServerResponse } from 'node:http';
import { deny, type RequestLike, toAnswer } from '../client/decision.ts';
import { HubError } from '../errors.ts';
import { type Answer, writeAnswer } from '../http/answer.ts';
import { canonicalPath } from '../http/canonical-path.ts';
import type { ClientAddressReader } from '../http/client-address.ts';
import type { ErrorAnswers } from '../http/error-answers.ts';
import { hostnameOf } from '../http/host-header.ts';
import { methodProblem } from '../proxy/forwarded-methods.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { text } from '../texts/text.ts';
import type { Authorized, GateDecision, Gatekeeper } from './gatekeeper.ts';
import { ambiguousPath, asHubError, outdated } from './gateway-answers.ts';
import { checkRules, isInGroups, notInGroups } from './rule-check.ts';

/**
 * Tells another proxy whether it may pass a request on: nginx (`auth_request`), Traefik (ForwardAuth) and Caddy
 * (`forward_auth`). The guard decides as it does for what the gateway forwards itself.
 */
export interface ForwardAuth {
  /** Takes a request to one of its two addresses; false leaves any other. */
  handle(req: IncomingMessage, res: ServerResponse, pathname: string): boolean;
}

/** What the proxy is asked for by its visitor. */
interface Asked {
  readonly route: Route;
  readonly request: RequestLike & { readonly method: string; readonly url: string };
  readonly pathname: string;
}

/** `redirects`: a browser may be sent to the login. nginx takes 2xx, 401 and 403 only. */
type Way = 'redirects' | 'status';

const ways: ReadonlyMap<string, Way> = new Map([
  ['forward-auth', 'redirects'],
  ['auth-request', 'status'],
]);

const identityNames = [
  'X-Hub-User',
  'X-Hub-Groups',
  'X-Hub-Scopes',
  'X-Hub-Display-Name',
  'X-Hub-Email',
  'X-Hub-Assertion',
];
/** As applications read the names of headers: some take an underscore for a hyphen. */
const identityHeader = /^x[-_]hub[-_]/i;
const methodName = /^[A-Z][A-Z-]{0,30}$/;

export function createForwardAuth(deps: {
  readonly routes: Pick<RouteTable, 'match'>;
  readonly guard: Gatekeeper;
  readonly clientAddress: ClientAddressReader;
  readonly answers: ErrorAnswers;
  readonly isOutdated: () => boolean;
  /** Path of the hub's pages, a slash at its end. */
  readonly hubPath: string;
}): ForwardAuth {
  const { routes, guard, clientAddress, answers } = deps;
  const wayOf = (pathname: string): Way | undefined =>
    pathname.startsWith(deps.hubPath) ? ways.get(pathname.slice(deps.hubPath.length)) : undefined;

  /** What is asked about. Throws HubError for what no proxy of the operator would ask. */
  function read(req: IncomingMessage): Asked {
    const client = clientAddress(req);
    if (!client.isTrustedProxy) throw notTrusted();
    if (Object.keys(req.headers).some((name) => identityHeader.test(name))) throw smuggled();
    const original = URL.parse(header(req, 'x-original-url') ?? '');
    const url = agreed(
      header(req, 'x-forwarded-uri'),
      original === null ? undefined : pathOf(header(req, 'x-original-url') ?? ''),
    );
    const method = agreed(header(req, 'x-forwarded-method'), header(req, 'x-original-method'));
    if (url === undefined || method === undefined) throw incomplete();
    const path = canonicalPath(url);
    if (path === undefined || !methodName.test(method)) throw ambiguousPath();
    const wrongMethod = methodProblem(method);
    if (wrongMethod !== undefined) throw wrongMethod;
    const host = hostnameOf(original?.host ?? client.host);
    const match = routes.match(path, host);
    if (match?.kind === 'ambiguous') throw ambiguousPath();
    if (match === undefined || match.kind === 'nowhere' || !match.route.isBehindProxy) {
      throw unknownApp();
    }
    const { headers } = req;
    return { route: match.route, request: { method, url, headers }, pathname: path.pathname };
  }

  function allow(req: IncomingMessage, res: ServerResponse, authorized?: Authorized): void {
    const headers: Record<string, string> = { 'cache-control': 'no-store' };
    // Empty where no one is known: a proxy that copies them then replaces what its client sent.
    for (const name of identityNames) headers[name.toLowerCase()] = '';
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
    way: Way,
  ): void {
    if (decision.kind === 'authorized') {
      allow(req, res, decision);
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

  function refuse(req: IncomingMessage, res: ServerResponse, error: HubError, way: Way): void {
    const shown = way === 'status' && isOfRequest(error) ? closedTo(error) : error;
    answers.respond(req, res, shown, { isExpected: true });
  }

  return {
    handle(req, res, pathname) {
      const way = wayOf(pathname);
      if (way === undefined) return false;
      try {
        const { route, request, pathname: asked } = read(req);
        const addressOf = () => clientAddress(req).address;
        const rule = checkRules(route, { pathname: asked }, request.method, addressOf);
        if (rule instanceof HubError) throw rule;
        if (rule === 'everyone') {
          allow(req, res);
          return true;
        }
        if (deps.isOutdated()) throw outdated();
        const known = guard.known(route, request);
        if (known !== undefined && isInGroups(known, rule)) {
          allow(req, res, known);
          return true;
        }
        guard.decide(route, request).then(
          (decision) => {
            const isRefused = decision.kind === 'authorized' && !isInGroups(decision, rule);
            answer(req, res, isRefused ? deny(notInGroups()) : decision, way);
          },
          (thrown: unknown) => refuse(req, res, asHubError(thrown), way),
        );
      } catch (thrown) {
        refuse(req, res, asHubError(thrown), way);
      }
      return true;
    },
  };
}

/** One value, if the two names of a header do not say different things. */
function agreed(one: string | undefined, other: string | undefined): string | undefined {
  if (one !== undefined && other !== undefined && one !== other) throw contradicting();
  return one ?? other;
}

/** Path and query as they were written, not as a URL parser would correct them. */
function pathOf(url: string): string | undefined {
  return /^https?:\/\/[^/?#]*(\/.*)$/i.exec(url)?.[1];
}

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** A page is no permission, so it does not look like one. */
function notAllowed(answer: Answer): Answer {
  return answer.status < 300 ? { ...answer, status: 403 } : answer;
}

/** nginx takes any other refusal for a failure of its own. */
function isOfRequest({ code }: HubError): boolean {
  return code === 'invalid_path' || code === 'bad_request' || code === 'method_not_allowed';
}

function closedTo({ message, hint }: HubError): HubError {
  return new HubError('forbidden', message, { ...(hint !== undefined && { hint }) });
}

function notTrusted(): HubError {
  return new HubError('forbidden', text`Only a proxy that the hub trusts may ask this.`, {
    hint: text`Its address has to be in Hub.trusted_proxies.`,
  });
}

function smuggled(): HubError {
  return new HubError('bad_request', text`The request claims an identity in a header.`, {
    hint: text`X-Hub-… headers are for the hub to set.`,
  });
}

function incomplete(): HubError {
  return new HubError('bad_request', text`The proxy does not say which request it asks about.`, {
    hint: text`It has to send X-Forwarded-Method and X-Forwarded-Uri, or X-Original-Method and X-Original-URL.`,
  });
}

function contradicting(): HubError {
  return new HubError('bad_request', text`The request says two things about what is asked for.`, {
    hint: text`A proxy must replace X-Forwarded-… and X-Original-… headers that its clients send.`,
  });
}

function unknownApp(): HubError {
  return new HubError('forbidden', text`The hub knows of no app at this address.`, {
    hint: text`Its host and path have to be in Proxy.extra_routes, with "access": "forward-auth".`,
  });
}

/** Whether a request asks about another, a WebSocket perhaps: then its upgrade is not its own. */
export function isForwardAuth({ url = '' }: IncomingMessage, hubPath: string): boolean {
  return ways.has(
    (url.startsWith(hubPath) ? url.slice(hubPath.length) : '').split('?', 1)[0] ?? '',
  );
}
