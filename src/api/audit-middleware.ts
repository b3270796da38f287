import type { Context, Middleware } from 'koa';
import { actAs } from '../audit/actor.ts';
import type { AuditTarget, Deed } from '../audit/deed.ts';
import { HubError } from '../errors.ts';
import type { ClientAddress } from '../http/client-address.ts';
import type { Resource } from '../rbac/access-check.ts';
import type { AuditTrail } from '../store/audit-trail.ts';
import { auditActionsOf, type OperationDeclaration, resourceOf } from './operation.ts';

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

/** Tells the audit log which operation a request is. */
export function noteOperation(
  ctx: Context,
  operation: OperationDeclaration,
  params: Readonly<Record<string, string>>,
): void {
  ctx.state['operation'] = { operation, params };
}

interface NotedOperation {
  readonly operation: OperationDeclaration;
  readonly params: Readonly<Record<string, string>>;
}

function undone(ctx: Context, error: unknown): Deed | undefined {
  const noted = ctx.state['operation'] as NotedOperation | undefined;
  const [action] = noted === undefined ? [] : auditActionsOf(noted.operation);
  const code = error instanceof HubError ? error.code : 'internal';
  if (error instanceof HubError && error.isRefusal) {
    return { action: action ?? 'access', result: 'refused', ...whatOf(ctx, noted, { code }) };
  }
  if (action === undefined || !failures.has(code)) return undefined;
  return { action, result: 'failed', ...whatOf(ctx, noted, { code }) };
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
  noted: NotedOperation | undefined,
  detail: Deed['detail'],
): Pick<Deed, 'target' | 'detail'> {
  if (noted === undefined) {
    // The pattern of the path: what stands in its place may be a secret.
    const route = ctx['_matchedRoute'] as string | RegExp | undefined;
    const page = route === undefined ? {} : { page: `${ctx.method} ${String(route)}` };
    return { detail: { ...page, ...detail } };
  }
  const { operation, params } = noted;
  const resource = resourceOf(operation, params);
  return {
    ...(resource !== undefined && { target: targetOf(resource) }),
    detail: { operation: operation.id, ...detail },
  };
}

function targetOf(resource: Resource): AuditTarget {
  if (resource.kind !== 'server') return resource;
  return { kind: 'server', name: resource.userName, part: resource.serverName };
}
