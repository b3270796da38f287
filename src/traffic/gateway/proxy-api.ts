import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { z } from 'zod';
import { isMetadataAddress } from '../../platform/addresses/host-address.ts';
import { actAs, identifyActor } from '../../platform/audit/actor.ts';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import { dateOf } from '../../platform/concurrency/monotonic-clock.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { equalSecrets } from '../../platform/crypto/hash.ts';
import { versionOf } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import { writeAnswer } from '../../platform/http/answer.ts';
import { readJsonBody } from '../../platform/http/body.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import { readIfMatch, writeETag } from '../../platform/http/if-match.ts';
import {
  type ClientAddressReader,
  canonicalPath,
  decodePath,
} from '../../platform/http/request-address.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { leadsTo } from '../../spawning/processes/port-listener.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { parseUpstreamAddress } from '../proxy/upstream-address.ts';

const maxBodyBytes = 64 * 1024;
const maxPathLength = 2_000;
const maxRoutes = 10_000;

/** Whatever else is given is kept and shown again, as clients expect it. */
const routeBody = z.looseObject({ target: z.string().max(2_000) });

/** A route as it was given: its decoded path and the body. */
export type SavedRoute = readonly [path: string, body: z.output<typeof routeBody>];

interface Given {
  readonly route: Route;
  readonly body: z.output<typeof routeBody>;
}

/**
 * The REST API of configurable-http-proxy (its README, "REST API"), by which a JupyterHub tells its routes. They are
 * open to everyone, since it guards them itself.
 */
export function createProxyApi(deps: {
  readonly routes: Pick<RouteTable, 'find' | 'list' | 'add' | 'replace' | 'remove'>;
  readonly token: Secret;
  /** Host name for which the routes are; they share those of the hub when undefined. */
  readonly host: string | undefined;
  readonly basePath: string;
  /** Where the hub itself listens: a route that leads there would go in a circle. */
  readonly ownUrls: readonly string[];
  readonly answers: Pick<ErrorAnswers, 'respond'>;
  readonly clientAddress: ClientAddressReader;
  readonly audit: Pick<AuditTrail, 'recordAlone' | 'recordBounded'>;
  readonly log: Logger;
  /** Those of the last run. What has become impossible since is left out, and the log says why. */
  readonly kept: readonly SavedRoute[];
  /** Called with all of them after each change. */
  readonly onChange: (routes: () => readonly SavedRoute[]) => void;
}): RequestListener {
  const { routes, token, host, basePath, answers, audit } = deps;
  const reserved = ['hub', 'user', 'services'].map((name) => `${basePath}${name}/`);
  /** By decoded path without the slash at its end. */
  const given = new Map<string, Given>();

  /** The route as long as it is the one that was given: the configuration may have put another in its place. */
  function routeOf({ route }: Given): Route | undefined {
    return routes.find(route.key) === route ? route : undefined;
  }

  function modelOf(each: Given): object {
    const atMs = routeOf(each)?.lastActivityMs;
    return {
      ...each.body,
      ...(atMs !== undefined && { last_activity: dateOf(atMs).toISOString() }),
    };
  }

  function list(query: URLSearchParams): object {
    const asked = query.get('inactive_since') ?? query.get('inactiveSince');
    const sinceMs = asked === null ? undefined : Date.parse(asked);
    if (Number.isNaN(sinceMs)) throw badRequest('inactive_since is no date.');
    const shown = [...given].filter(([, each]) => {
      const atMs = routeOf(each)?.lastActivityMs;
      return sinceMs === undefined || (atMs !== undefined && dateOf(atMs).getTime() < sinceMs);
    });
    return Object.fromEntries(shown.map(([path, each]) => [path, modelOf(each)]));
  }

  function requireFree(prefix: string): void {
    if (host === undefined) {
      const hidden = basePath.startsWith(prefix) ? basePath : undefined;
      const taken = hidden ?? reserved.find((each) => prefix.startsWith(each));
      if (taken !== undefined) throw shadowing(prefix, `${taken} of this hub`);
    }
    const mine = new Set([...given.values()].map(({ route }) => route));
    const other = routes
      .list()
      .filter((route) => route.host === host && !mine.has(route))
      .find((route) => prefix.startsWith(route.prefix));
    if (other !== undefined) throw shadowing(prefix, `the route ${other.key}`);
  }

  /** Whether that changed something: a JupyterHub gives the same again whenever it starts. */
  function put(path: string, body: Given['body']): boolean {
    const prefix = prefixOf(path);
    const { target } = body;
    requireTarget(target, deps.ownUrls);
    const former = given.get(path);
    const current = former && routeOf(former);
    if (former === undefined) {
      if (given.size >= maxRoutes) throw new HubError('conflict', 'There are too many routes.');
      requireFree(prefix);
    }
    const access = host === undefined ? 'public' : 'foreign';
    const definition = { prefix, host, target, access, owner: { kind: 'extra' } } as const;
    if (current === undefined) given.set(path, { route: routes.add(definition), body });
    else if (current.target === target) given.set(path, { route: current, body });
    else given.set(path, { route: routes.replace(definition), body });
    return current === undefined || !isDeepStrictEqual(former?.body, body);
  }

  function auditEventOf(
    action: AuditEvent['action'],
    path: string,
    detail?: AuditEvent['detail'],
  ): AuditEvent {
    const target = { kind: 'route', name: path } as const;
    return { action, target, detail: { ...detail, ...(host !== undefined && { host }) } };
  }

  function remove(path: string): void {
    const each = given.get(path);
    if (each === undefined) throw noRoute();
    given.delete(path);
    if (routeOf(each) !== undefined) routes.remove(each.route.key);
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // Before anything is read of the request, least of all its body.
    if (!isAuthorized(req, token)) {
      audit.recordBounded({ action: 'access', result: 'refused', detail: { page: 'proxy_api' } });
      throw new HubError('forbidden', 'The token is not right.');
    }
    identifyActor({ kind: 'proxy_api' });
    const { url = '', method = 'GET' } = req;
    const [pathname = '', search = ''] = url.split('?', 2);
    const match = /^\/api\/routes(\/.*)?$/.exec(pathname);
    if (match === null) throw new HubError('not_found', 'There is only /api/routes.');
    const isAll = match[1] === undefined || match[1] === '/';
    const path = readPath(match[1] ?? '/');
    const requireVersion = (each: Given | undefined) =>
      readIfMatch(req.headers['if-match'])(each && versionOf(each.body));
    switch (method) {
      case 'GET': {
        const each = given.get(path);
        if (!isAll && each === undefined) throw noRoute();
        const isList = isAll || each === undefined;
        const body = isList ? list(new URLSearchParams(search)) : modelOf(each);
        writeAnswer(req, res, {
          status: 200,
          headers: {
            'content-type': 'application/json',
            'cache-control': 'no-store',
            ...(!isList && eTagOf(each)),
          },
          body: JSON.stringify(body),
        });
        return;
      }
      case 'POST': {
        const body = await readJsonBody(req, maxBodyBytes, { anyContentType: true });
        const parsed = routeBody.safeParse(body);
        if (!parsed.success) throw badRequest('The body needs a target, as text.');
        const { target } = parsed.data;
        requireVersion(given.get(path));
        if (put(path, parsed.data)) {
          keep();
          await audit.recordAlone(auditEventOf('route.save', path, { target }));
        }
        writeAnswer(req, res, { status: 201, headers: eTagOf({ body: parsed.data }), body: '' });
        return;
      }
      case 'DELETE':
        requireVersion(given.get(path));
        remove(path);
        keep();
        await audit.recordAlone(auditEventOf('route.delete', path));
        writeAnswer(req, res, { status: 204, headers: {}, body: '' });
        return;
      default:
        throw new HubError('method_not_allowed', 'The methods are GET, POST and DELETE.');
    }
  }

  const keep = () => deps.onChange(() => [...given].map(([path, { body }]) => [path, body]));
  for (const [path, body] of deps.kept) {
    try {
      put(path, body);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      const { message: reason, hint } = error;
      deps.log.warn({ path, reason, hint }, 'saved proxy route skipped, no longer valid');
    }
  }

  return (req, res) => {
    const { address } = deps.clientAddress(req);
    actAs({ kind: 'anonymous', address }, () => answer(req, res)).catch((thrown: unknown) => {
      // What is left of a body is not waited for.
      res.setHeader('connection', 'close');
      answers.respond(req, res, thrown, {
        wantsPage: false,
        isExpected: thrown instanceof HubError,
      });
    });
  };
}

function eTagOf({ body }: Pick<Given, 'body'>): { readonly etag: string } {
  return { etag: writeETag(versionOf(body)) };
}

function isAuthorized({ headers }: IncomingMessage, token: Secret): boolean {
  const [, shown] =
    /^(?:token|bearer) +([\x21-\x7e]{1,1000})$/i.exec(headers.authorization ?? '') ?? [];
  return shown !== undefined && equalSecrets(shown, token.reveal());
}

/** The decoded path of a route, without the slash at its end. */
function readPath(encoded: string): string {
  const path = encoded.length > maxPathLength ? undefined : canonicalPath(encoded);
  const decoded = path && decodePath(path.pathname);
  if (decoded === undefined) throw badRequest('The path of the route is not one, or too long.');
  return decoded === '/' ? '/' : decoded.replace(/\/$/, '');
}

function prefixOf(path: string): string {
  if (path === '/') return '/';
  const segments = path.slice(1).split('/');
  if (segments.includes('') || segments.some((text) => text.includes('%'))) {
    throw badRequest('The path of the route has empty segments, or percent signs.');
  }
  return `/${segments.map((text) => encodeURIComponent(text).replaceAll('%40', '@')).join('/')}/`;
}

function requireTarget(target: string, ownUrls: readonly string[]): void {
  const url = URL.parse(target);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw badRequest('The target is no http:// or https:// URL.');
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw badRequest('The target has a path: the path that visitors ask for is passed on whole.');
  }
  try {
    parseUpstreamAddress(target);
  } catch {
    throw badRequest('The target is no address without user name and password.');
  }
  if (ownUrls.some((own) => leadsTo(target, own))) {
    throw badRequest('The target is this hub: it would go in a circle.');
  }
  if (isMetadataAddress(url.hostname)) {
    throw badRequest(
      'The target is a link-local or metadata address, where clouds keep credentials.',
    );
  }
}

function badRequest(message: string): HubError {
  return new HubError('bad_request', message);
}

function noRoute(): HubError {
  return new HubError('not_found', 'There is no such route.');
}

function shadowing(what: string, other: string): HubError {
  return new HubError('conflict', `A route for ${what} would hide ${other}.`, {
    hint: 'Give JupyterHub a base_url of its own, or a host name of its own (Hub.proxy_api.host).',
  });
}
