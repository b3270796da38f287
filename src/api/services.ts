import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../errors.ts';
import { checkAccess, listFilter } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { Service } from '../services/service.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import { callerOf } from './caller-middleware.ts';
import { requireScopes } from './require-scopes.ts';

const readScopes = ['read:services', 'read:services:name', 'read:roles:services'];

/** `/services` and what is below it. */
export function serviceRoutes(
  router: Router,
  parts: {
    readonly registry: ServiceRegistry;
    readonly roles: Pick<RoleStore, 'heldBy'>;
    readonly authority: Authority;
  },
): void {
  const { registry, roles, authority } = parts;

  async function present(service: Service, caller: Caller): Promise<Record<string, unknown>> {
    const { name, isAdmin } = service;
    const membership = await authority.membership();
    const resource = { kind: 'service', name } as const;
    const may = (scope: string) =>
      checkAccess(caller.scopes, scope, resource, membership) === 'granted';
    // Whoever may know that a service is there may know that it is an administrator's.
    const model: Record<string, unknown> = { kind: 'service', name, admin: isAdmin };
    if (may('read:roles:services')) {
      const held = await roles.heldBy({ kind: 'service', name, isAdmin });
      model['roles'] = held.map((role) => role.name);
    }
    if (may('read:services')) Object.assign(model, describe(service));
    return model;
  }

  function describe(service: Service): Record<string, unknown> {
    const status = registry.statusOf(service.name);
    return {
      url: service.url ?? null,
      prefix: service.url === undefined ? null : service.prefix,
      command: service.launch?.command ?? [],
      display: service.isDisplayed,
      info: service.info,
      access: service.access,
      managed: service.kind === 'managed',
      pid: status?.pid ?? null,
      state: status?.state ?? null,
      ready: status?.isReady ?? false,
      restarts: status?.restarts ?? 0,
      started: status?.startedAt?.toISOString() ?? null,
      next_start: status?.nextStartAt?.toISOString() ?? null,
      last_error: status?.lastError ?? null,
      last_exit:
        status?.lastExit === undefined
          ? null
          : { ...status.lastExit, at: status.lastExit.at.toISOString() },
      usage: status?.usage ?? null,
    };
  }

  function getService(ctx: Context): Service {
    const service = registry.find(String(ctx['params']['service']));
    if (service === undefined) throw new HubError('not_found', 'There is no such service.');
    return service;
  }

  router.get('/services', async (ctx) => {
    const caller = callerOf(ctx);
    const filter = listFilter(caller.scopes, 'list:services');
    if (filter === undefined) requireScopes(ctx, ['list:services'], await authority.membership());
    const visible = registry
      .services()
      .filter(({ name }) => filter === 'all' || filter?.services.has(name) === true);
    const models = await Promise.all(
      visible.map(async (service) => [service.name, await present(service, caller)]),
    );
    ctx.body = Object.fromEntries(models);
  });

  router.get('/services/:service', async (ctx) => {
    const name = ctx.params['service'] ?? '';
    const caller = requireScopes(ctx, readScopes, await authority.membership(), {
      kind: 'service',
      name,
    });
    ctx.body = await present(getService(ctx), caller);
  });

  router.get('/services/:service/output', async (ctx) => {
    const name = ctx.params['service'] ?? '';
    requireScopes(ctx, ['admin:services'], await authority.membership(), { kind: 'service', name });
    ctx.body = { lines: registry.statusOf(getService(ctx).name)?.outputTail ?? [] };
  });

  router.post('/services/:service/restart', async (ctx) => {
    const name = ctx.params['service'] ?? '';
    requireScopes(ctx, ['admin:services'], await authority.membership(), { kind: 'service', name });
    registry.restart(getService(ctx).name);
    ctx.status = 202;
    ctx.body = { message: 'The service is restarting.' };
  });
}
