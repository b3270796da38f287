import type Router from '@koa/router';
import type { Context } from 'koa';
import { type Caller, presentsToken } from '../../identity/rbac/access-check.ts';
import type {
  AnyReply,
  Operation,
  OperationDeclaration,
  Page,
} from '../../operations/operation.ts';
import type { Perform } from '../../operations/perform.ts';
import { unknownParameters } from '../../operations/unknown-parameters.ts';
import { HubError } from '../../platform/errors.ts';
import { readJsonBody, setBody } from '../../platform/http/body.ts';
import { readIfMatch, writeETag } from '../../platform/http/if-match.ts';
import { text } from '../../platform/texts/text.ts';
import {
  callerOf,
  findCallerAgain,
  type LiveCallers,
  presentedToken,
} from './caller-middleware.ts';
import { writeEventStream } from './event-stream.ts';
import { type PageLimits, parsePage, queryOf, writePage } from './paging.ts';
import {
  type Identified,
  type IdentifyByPassword,
  identifyByPassword,
} from './password-request.ts';

/** Makes a router answer operations: each is read, performed and written as it is declared. */
export function addOperations<Deps>(
  router: Router,
  operations: readonly Operation<Deps>[],
  options: {
    readonly perform: Perform<Deps>;
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
    const parameters = Object.keys(queryOf(operation));
    for (const path of [operation.path, ...(operation.aliases ?? [])]) {
      // `…/alice/` is the default server of alice, and `…/alice` all that she has.
      const answerWith = (ctx: Context) => answer(ctx, operation, parameters);
      router.register(routerPath(path), [operation.method], answerWith, {
        strict: paths.has(path.endsWith('/') ? path.slice(0, -1) : `${path}/`),
      });
    }
  }

  async function answer(
    ctx: Context,
    operation: Operation<Deps>,
    parameters: readonly string[],
  ): Promise<void> {
    const page =
      operation.isPaged === undefined ? undefined : () => parsePage(ctx, options.pageLimits);
    const { reply, mayPerform } = await options.perform(operation, {
      params: ctx['params'],
      query: ctx.query,
      check: () => rejectMisspelt(ctx.query, parameters),
      identify: () => identify(ctx, operation),
      requireRecentLogin: () => options.requireRecentLogin(ctx),
      readBody: (caller) => readBody(ctx, caller),
      requireVersion: readIfMatch(ctx.get('If-Match')),
      ...(page && { page }),
      accepts: (...types) => ctx.accepts(...types) as string | false,
      presentedToken: () => presentedToken(ctx),
    });
    write(ctx, operation, page?.(), reply);
    if (reply.events !== undefined) follow(ctx, mayPerform, reply.events);
  }

  function readBody(ctx: Context, caller: Caller | undefined): Promise<unknown> {
    return readJsonBody(ctx.req, options.bodyLimitBytes, {
      anyContentType: caller !== undefined && presentsToken(caller),
    });
  }

  /** Writes events for as long as the caller may have them. */
  function follow(
    ctx: Context,
    mayPerform: (caller: Caller | undefined) => Promise<boolean>,
    events: NonNullable<AnyReply['events']>,
  ): void {
    const stream = writeEventStream(ctx, events);
    const isAllowed = async () => mayPerform(await findCallerAgain(ctx));
    const stopWatching = options.liveCallers.watch(isAllowed, stream.end);
    stream.closed.addEventListener('abort', stopWatching);
  }

  async function identify(ctx: Context, operation: Operation<Deps>): Promise<Identified> {
    const caller = operation.scopes === 'public' ? undefined : callerOf(ctx);
    if (caller !== undefined || operation.takesPassword !== true) return { caller };
    return await identifyByPassword(ctx, operation, options.identifyByPassword);
  }

  function write(
    ctx: Context,
    operation: OperationDeclaration,
    page: Page | undefined,
    reply: AnyReply,
  ): void {
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
    } else if (page !== undefined) {
      const { publicOrigin } = options;
      const hasEnvelope = operation.isPaged === 'in_envelope';
      writePage(ctx, page, { items, total, publicOrigin, hasEnvelope });
    } else setBody(ctx, body ?? (status === 204 ? null : ''));
    ctx.set({ ...headers });
  }
}

/** Unknown parameters are ignored, but a misspelt one would silently change the answer. */
function rejectMisspelt(query: object, declared: readonly string[]): void {
  for (const { name, meant } of unknownParameters(query, declared)) {
    if (meant === undefined) continue;
    throw new HubError('bad_request', text`There is no parameter ${name}; did you mean ${meant}?`);
  }
}

/** A path of an operation as Koa's router writes it. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}
