import type { Middleware } from 'koa';
import { actAs } from '../../platform/audit/actor.ts';
import { undoneAction } from '../../platform/audit/undone.ts';
import type { ClientAddress } from '../../platform/http/client-address.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';

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
        // The pattern of the path: what stands in its place may be a secret.
        const route = ctx['_matchedRoute'] as string | RegExp | undefined;
        const page = route === undefined ? {} : { page: `${ctx.method} ${String(route)}` };
        const auditEvent = undoneAction(error, page);
        if (auditEvent !== undefined) audit.recordBounded(auditEvent);
        throw error;
      }
    });
  };
}
