import type Router from '@koa/router';
import type { Lockouts } from '../accounts/lockouts.ts';
import { HubError } from '../errors.ts';
import type { Authority } from '../rbac/authority.ts';
import { requireScopes } from './require-scopes.ts';

/** `/lockouts`: who has to wait after failed logins. */
export function lockoutRoutes(
  router: Router,
  { lockouts, authority }: { readonly lockouts: Lockouts; readonly authority: Authority },
): void {
  router.get('/lockouts', async (ctx) => {
    requireScopes(ctx, ['admin:users'], await authority.membership());
    const records = await lockouts.list();
    ctx.body = {
      lockouts: records.map(({ kind, subject, failures, lastFailureAt, lockedUntil }) => ({
        kind,
        subject,
        failures,
        last_failure: new Date(lastFailureAt).toISOString(),
        locked_until: new Date(lockedUntil).toISOString(),
      })),
    };
  });

  router.delete('/lockouts', async (ctx) => {
    requireScopes(ctx, ['admin:users'], await authority.membership());
    const { kind, subject } = ctx.query;
    if ((kind !== 'user' && kind !== 'address') || typeof subject !== 'string') {
      throw new HubError('bad_request', 'kind must be user or address, and subject be given.');
    }
    if (!(await lockouts.lift({ kind, subject }))) {
      throw new HubError('not_found', 'There are no failed logins to forget.');
    }
    ctx.status = 204;
  });
}
