import type { Logger } from 'pino';
import { HubError } from '../../errors.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { ServiceRegistry } from '../../services/service-registry.ts';
import { type AdminContext, parameter } from './admin-context.ts';
import { type AdminService, adminServicesPage } from './services-page.ts';

/** `/hub/admin/services`: how every service is. */
export function adminServiceRoutes(
  admin: AdminContext,
  deps: {
    readonly registry: Pick<ServiceRegistry, 'services' | 'find' | 'statusOf' | 'restart'>;
    readonly log: Logger;
  },
): void {
  const { pages } = admin;
  const { registry } = deps;

  admin.get('/admin/services', async (ctx, who) => {
    const { caller, may } = who;
    const filter = listFilter(caller.scopes, 'list:services');
    if (filter === undefined) who.require('list:services');
    const services = registry.services().flatMap((service): AdminService[] => {
      const { name, info, url, prefix, access } = service;
      const status = registry.statusOf(name);
      const resource = { kind: 'service', name } as const;
      const isListed = filter === 'all' || filter?.services.has(name) === true;
      if (status === undefined || !isListed || !may('read:services', resource)) return [];
      const title = info['title'];
      const isAdded = service.source === 'api' && may('admin:services', resource);
      return [
        {
          displayName: typeof title === 'string' ? title : undefined,
          url: url === undefined ? undefined : prefix,
          access,
          // What a service writes may hold anything; reading it is a right of its own.
          status: may('admin:services', resource) ? status : { ...status, outputTail: [] },
          mayRestart: may('admin:services', resource),
          mayEdit: isAdded && service.kind === 'external',
          mayDelete: isAdded,
        },
      ];
    });
    const layout = await pages.formLayoutFor(ctx);
    pages.send(ctx, adminServicesPage({ layout, services, mayAdd: may('admin:services') }));
  });

  admin.post(
    '/admin/services/:service/restart',
    async (ctx, who) => {
      const name = parameter(ctx, 'service');
      who.require('admin:services', { kind: 'service', name });
      if (registry.find(name) === undefined || !(await registry.restart(name))) {
        throw new HubError('not_found', 'There is no such service.');
      }
      deps.log.info({ service: name, by: who.login.user.name }, 'a service is restarted by hand');
      const text = `${name} is restarting.`;
      pages.redirectWithNotice(ctx, pages.urls.adminServices, { kind: 'good', text });
    },
    { needsRecentLogin: false },
  );
}
