import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../errors.ts';
import { readIfMatch, writeETag } from '../http/if-match.ts';
import { setBody } from '../http/json-body.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import { type Caller, presentsToken } from '../rbac/caller.ts';
import { emptyMembership } from '../rbac/membership.ts';
import { noteOperation } from './audit-middleware.ts';
import { authorise, createMay, isAuthorised } from './authorise.ts';
import { callerOf, findCallerAgain } from './caller-middleware.ts';
import { writeEventStream } from './event-stream.ts';
import type { LiveCallers } from './live-callers.ts';
import {
  type AnyReply,
  type AnyRequest,
  type Operation,
  type OperationDeclaration,
  type Page,
  pathParameters,
} from './operation.ts';
import { type PageLimits, parsePage, writePage } from './paging.ts';
import { parseBody, parseQuery } from './parse-request.ts';
import {
  type Identified,
  type IdentifyByPassword,
  identifyByPassword,
} from './password-request.ts';

const noParameters = Object.fromEntries(Object.keys(pathParameters).map((name) => [name, '']));

/** Makes a router answer operations: each is checked, parsed and written as it is declared. */
export function addOperations<Deps>(
  router: Router,
  operations: readonly Operation<Deps>[],
  deps: Deps,
  options: {
    readonly authorizer: Pick<Authorizer, 'membershipFor'>;
    /** Throws `forbidden` for a user who may do more than the caller; says nothing to one that is not there. */
    readonly requireMayActOn: (
      caller: Caller,
      /** The server, where the operation is about one. */
      acted: { readonly userName: string; readonly serverName?: string },
      scopes: OperationDeclaration['scopes'],
    ) => Promise<void>;
    /** Throws `recent_login_required` for a login by cookie that is not recent. */
    readonly requireRecentLogin: (ctx: Context) => Promise<void>;
    readonly identifyByPassword: IdentifyByPassword;
    readonly liveCallers: Pick<LiveCallers, 'watch'>;
    readonly publicOrigin: string;
    readonly bodyLimitBytes: number;
    readonly pageLimits: PageLimits;
  },
): void {
  const paths = new Set<string>(operations.flatMap(({ path, aliases = [] }) => [path, ...aliases]));
  for (const operation of operations) {
    for (const path of [operation.path, ...(operation.aliases ?? [])]) {
      // `…/alice/` is the default server of alice, and `…/alice` all that she has.
      router.register(routerPath(path), [operation.method], (ctx) => answer(ctx, operation), {
        strict: paths.has(path.endsWith('/') ? path.slice(0, -1) : `${path}/`),
      });
    }
  }

  async function answer(ctx: Context, operation: Operation<Deps>): Promise<void> {
    const params: AnyRequest['params'] = { ...noParameters, ...ctx['params'] };
    noteOperation(ctx, operation, params);
    const { caller, body: sentBody } = await identify(ctx, operation);
    const membership =
      caller === undefined
        ? emptyMembership
        : await options.authorizer.membershipFor(caller.scopes);
    const rows = authorise(operation, params, caller, membership);
    if (operation.actsOnUser === true && caller !== undefined) {
      const { name: userName = '', server = '' } = params;
      const acted = { userName, ...(operation.target === 'server' && { serverName: server }) };
      await options.requireMayActOn(caller, acted, operation.scopes);
    }
    if (operation.needsServerToken === true) requireServerToken(params, caller);
    const isByCookie = caller?.sessionId !== undefined && !presentsToken(caller);
    if (operation.needsRecentLogin === true && isByCookie) await options.requireRecentLogin(ctx);
    const page =
      operation.isPaged !== undefined
        ? parsePage(ctx, options.pageLimits)
        : { offset: 0, limit: 0 };
    const query = parseQuery(ctx, operation.query);
    const body =
      sentBody ??
      (await parseBody(ctx, operation, {
        limitBytes: options.bodyLimitBytes,
        anyContentType: caller !== undefined && presentsToken(caller),
      }));
    const may = createMay(caller, membership);
    const requireVersion = readIfMatch(ctx.get('If-Match'));
    const accepts = (...types: string[]) => ctx.accepts(...types) as string | false;
    const request = { params, query, body, caller, rows, page, may, requireVersion, accepts };
    const reply = await operation.handle(request, deps);
    write(ctx, operation, page, reply);
    if (reply.events !== undefined) follow(ctx, operation, params, reply.events);
  }

  /** Writes events for as long as the caller may have them. */
  function follow(
    ctx: Context,
    operation: OperationDeclaration,
    params: AnyRequest['params'],
    events: NonNullable<AnyReply['events']>,
  ): void {
    const stream = writeEventStream(ctx, events);
    const isAllowed = async () => {
      if (operation.scopes === 'public') return true;
      const caller = await findCallerAgain(ctx);
      if (caller === undefined) return false;
      const membership = await options.authorizer.membershipFor(caller.scopes);
      return isAuthorised(operation, params, caller, membership);
    };
    const stopWatching = options.liveCallers.watch(isAllowed, stream.end);
    stream.closed.addEventListener('abort', stopWatching);
  }

  async function identify(ctx: Context, operation: Operation<Deps>): Promise<Identified> {
    const caller = operation.scopes === 'public' ? undefined : callerOf(ctx);
    if (caller !== undefined || operation.takesPassword !== true) return { caller };
    return await identifyByPassword(ctx, operation, options.identifyByPassword);
  }

  function write(ctx: Context, operation: OperationDeclaration, page: Page, reply: AnyReply): void {
    const { status, headers = {}, body, text, items, total = 0, events, onSent, version } = reply;
    if (version !== undefined) ctx.set('ETag', writeETag(version));
    ctx.status = status;
    // A client that has left already hears of nothing more.
    if (ctx.res.closed) onSent?.();
    else if (onSent !== undefined) ctx.res.once('close', onSent);
    if (operation.answers[status]?.others !== undefined) ctx.vary('Accept');
    if (events !== undefined) return;
    if (text !== undefined) {
      ctx.type = 'text/plain; charset=utf-8';
      ctx.body = text;
    } else if (operation.isPaged !== undefined) {
      const { publicOrigin } = options;
      const hasEnvelope = operation.isPaged === 'in_envelope';
      writePage(ctx, page, { items, total, publicOrigin, hasEnvelope });
    } else setBody(ctx, body ?? (status === 204 ? null : ''));
    ctx.set({ ...headers });
  }
}

function requireServerToken(params: AnyRequest['params'], caller: Caller | undefined): void {
  const own = caller?.accessToken?.server;
  if (own?.userName === params['name'] && own?.serverName === params['server']) return;
  throw new HubError('forbidden', "Only the server's own token may do this.");
}

/** A path of an operation as Koa's router writes it. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}
