import type { Context } from 'koa';
import { z } from 'zod';
import { wholeNumber } from '../../operations/models.ts';
import type { OperationDeclaration, Page } from '../../operations/operation.ts';
import { checkQuery } from '../../operations/perform.ts';
import { setBody } from '../../platform/http/body.ts';
import { JsonText } from '../../platform/protocol/json-text.ts';

/** Media type of a page with its envelope, which a client asks for in `Accept`. */
export const envelopeMediaType = 'application/jupyterhub-pagination+json';

/** The query of every list that comes in pages. */
const pageQuery = z.object({
  offset: wholeNumber.optional().describe('How many to leave out.'),
  limit: wholeNumber
    .optional()
    .describe(
      'How many at most, never more than `Hub.api_page_max_limit`. Left out, it is `Hub.api_page_default_limit` in an envelope and the most there is without one.',
    ),
});

/** The parameters that a query of an operation may have. */
export function queryOf({
  query,
  isPaged,
}: Pick<OperationDeclaration, 'query' | 'isPaged'>): Readonly<Record<string, z.ZodType>> {
  return {
    ...(isPaged === undefined ? {} : pageQuery.shape),
    ...(query?.shape as Record<string, z.ZodType> | undefined),
  };
}

/** The envelope around a page of a list. */
export const pagination = z.object({
  offset: z.int(),
  limit: z.int(),
  total: z.int(),
  next: z.object({ offset: z.int(), limit: z.int(), url: z.url() }).nullable(),
});

/** A page of a list in its envelope. */
export function envelopeOf(items: z.ZodType): z.ZodObject {
  return z.object({ items, _pagination: pagination });
}

/** How long pages are, as the operator has it. */
export interface PageLimits {
  /** Of a page in an envelope, where the client gives no limit. */
  readonly default: number;
  readonly max: number;
}

/** Reads `offset` and `limit` of a list; the limit is clamped to the largest page. */
export function parsePage(ctx: Context, limits: PageLimits): Page {
  const { offset = 0, limit } = pageQuery.parse(checkQuery(ctx.query, pageQuery));
  const asked = limit ?? (wantsEnvelope(ctx) ? limits.default : limits.max);
  return { offset, limit: Math.min(Math.max(asked, 1), limits.max) };
}

/** Answers one page of a list: bare, or with an envelope where it always has one or the client asks for it. */
export function writePage(
  ctx: Context,
  { offset, limit }: Page,
  {
    items,
    total,
    publicOrigin,
    hasEnvelope,
  }: { items: unknown; total: number; publicOrigin: string; hasEnvelope: boolean },
): void {
  if (!hasEnvelope && !wantsEnvelope(ctx)) {
    ctx.type = 'json';
    setBody(ctx, items instanceof JsonText ? items.bytes : items);
    return;
  }
  const nextOffset = offset + limit;
  const nextUrl = new URL(ctx.originalUrl, requestOrigin(ctx, publicOrigin));
  nextUrl.searchParams.set('offset', String(nextOffset));
  nextUrl.searchParams.set('limit', String(limit));
  const next = nextOffset < total ? { offset: nextOffset, limit, url: nextUrl.href } : null;
  const pagination = { offset, limit, total, next };
  setBody(
    ctx,
    items instanceof JsonText
      ? Buffer.concat([
          Buffer.from('{"items":'),
          items.bytes,
          Buffer.from(`,"_pagination":${JSON.stringify(pagination)}}`),
        ])
      : { items, _pagination: pagination },
  );
  ctx.type = wantsEnvelope(ctx) ? envelopeMediaType : 'json';
}

function wantsEnvelope(ctx: Context): boolean {
  return ctx.get('Accept').includes(envelopeMediaType);
}

/**
 * Where the client itself found the API: clients of JupyterHub's ask for the next page at exactly the
 * address they are given, and servers may reach no other than the internal one.
 */
function requestOrigin(ctx: Context, publicOrigin: string): string {
  if (ctx.host === new URL(publicOrigin).host) return publicOrigin;
  return URL.parse(`${ctx.protocol}://${ctx.host}`)?.origin ?? publicOrigin;
}
