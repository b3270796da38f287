import type { Context, Middleware } from 'koa';
import { type Attempt, actAs, currentAttempt } from '../audit/actor.ts';
import type { Deed } from '../audit/deed.ts';
import { HubError } from '../errors.ts';
import type { ClientAddress } from '../http/client-address.ts';
import type { AuditTrail } from '../store/audit-trail.ts';

/**
 * Makes everything that a request does its caller's in the audit log, and records what is refused or fails:
 * of the API, of the pages and of OAuth alike. Who it is, is found out later on the way.
 */
export function auditMiddleware(audit: Pick<AuditTrail, 'recordBounded'>): Middleware {
  return async (ctx, next) => {
    const { address } = ctx.state['client'] as ClientAddress;
    await actAs({ kind: 'anonymous', address }, async () => {
      try {
        await next();
      } catch (error) {
        const deed = undone(ctx, error);
        if (deed !== undefined) audit.recordBounded(deed);
        throw error;
      }
    });
  };
}

function undone(ctx: Context, error: unknown): Deed | undefined {
  const attempt = currentAttempt();
  const code = error instanceof HubError ? error.code : 'internal';
  if (error instanceof HubError && error.isRefusal) {
    const action = attempt?.action ?? 'access';
    return { action, result: 'refused', ...whatOf(ctx, attempt, { code }) };
  }
  if (attempt?.action === undefined || !failures.has(code)) return undefined;
  return { action: attempt.action, result: 'failed', ...whatOf(ctx, attempt, { code }) };
}

/** Codes of what went wrong inside, and not in the request. */
const failures: ReadonlySet<string> = new Set([
  'internal',
  'spawn_failed',
  'upstream_failed',
  'upstream_timeout',
  'unavailable',
  'storage_unavailable',
]);

function whatOf(
  ctx: Context,
  attempt: Attempt | undefined,
  detail: Deed['detail'],
): Pick<Deed, 'target' | 'detail'> {
  if (attempt === undefined) {
    // The pattern of the path: what stands in its place may be a secret.
    const route = ctx['_matchedRoute'] as string | RegExp | undefined;
    const page = route === undefined ? {} : { page: `${ctx.method} ${String(route)}` };
    return { detail: { ...page, ...detail } };
  }
  const { operation, target } = attempt;
  return { ...(target !== undefined && { target }), detail: { operation, ...detail } };
}
