import type { Context } from 'koa';
import type { z } from 'zod';
import { HubError } from '../errors.ts';
import { readJsonBody } from '../http/body.ts';
import { type Caller, presentsToken } from '../rbac/caller.ts';

/** Reads a JSON body and checks it; every problem is named in one `bad_request`. */
export async function parseBody<Schema extends z.ZodType>(
  ctx: Context,
  schema: Schema,
  limitBytes: number,
): Promise<z.output<Schema>> {
  const caller = ctx.state['caller'] as Caller | undefined;
  const body = await readJsonBody(ctx.req, limitBytes, {
    anyContentType: caller !== undefined && presentsToken(caller),
  });
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'body'}: ${message}`,
  );
  throw new HubError('bad_request', `Invalid request body: ${problems.join('; ')}.`);
}

const wholeNumber = /^\d{1,9}$/;

/** Reads `offset` and `limit` of a list; the limit is clamped to the largest page. */
export function parsePage(ctx: Context): {
  readonly offset: number;
  readonly limit: number;
  readonly isEnveloped: boolean;
} {
  const isEnveloped = ctx.get('Accept').includes('application/jupyterhub-pagination+json');
  const limit =
    wholeNumberParameter(ctx, 'limit') ?? (isEnveloped ? defaultPageLength : maxPageLength);
  return {
    offset: wholeNumberParameter(ctx, 'offset') ?? 0,
    limit: Math.min(Math.max(limit, 1), maxPageLength),
    isEnveloped,
  };
}

const defaultPageLength = 50;
const maxPageLength = 200;

/** One page of a list. */
interface Page {
  readonly items: readonly unknown[];
  readonly total: number;
  readonly publicOrigin: string;
}

/** Answers one page of a list: bare, or with an envelope where the client asks for one. */
export function writePage(ctx: Context, { items, total, publicOrigin }: Page): void {
  const { offset, limit, isEnveloped } = parsePage(ctx);
  if (!isEnveloped) {
    ctx.body = items;
    return;
  }
  const nextOffset = offset + limit;
  const nextUrl = new URL(ctx.originalUrl, requestOrigin(ctx, publicOrigin));
  nextUrl.searchParams.set('offset', String(nextOffset));
  nextUrl.searchParams.set('limit', String(limit));
  const next = nextOffset < total ? { offset: nextOffset, limit, url: nextUrl.href } : null;
  ctx.body = { items, _pagination: { offset, limit, total, next } };
  ctx.type = 'application/jupyterhub-pagination+json';
}

/**
 * Where the client itself found the API: clients of JupyterHub's ask for the next page at exactly the
 * address they are given, and servers may reach no other than the internal one.
 */
function requestOrigin(ctx: Context, publicOrigin: string): string {
  if (ctx.host === new URL(publicOrigin).host) return publicOrigin;
  return URL.parse(`${ctx.protocol}://${ctx.host}`)?.origin ?? publicOrigin;
}

function wholeNumberParameter(ctx: Context, name: string): number | undefined {
  const value = ctx.query[name];
  if (value === undefined) return undefined;
  if (Array.isArray(value) || !wholeNumber.test(value)) {
    throw new HubError('bad_request', `${name} must be a whole number.`);
  }
  return Number(value);
}
