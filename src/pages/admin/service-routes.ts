import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { HubError } from '../../errors.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import { listFilter } from '../../rbac/access-check.ts';
import { expandForAnyHolder } from '../../rbac/expand-scopes.ts';
import type { RoleStore } from '../../rbac/role-store.ts';
import type { ScopeCatalogue } from '../../rbac/scope-definitions.ts';
import type { Service } from '../../services/service.ts';
import { serviceInfo } from '../../services/service-info.ts';
import type { ServiceRegistry } from '../../services/service-registry.ts';
import { readPageOf } from '../../store/page-edge.ts';
import { text, translated } from '../../texts/text.ts';
import { spanIn } from '../elements/load-plots.ts';
import { bordersOf, lastPageOf } from '../elements/paging.ts';
import { placeKey, placeOf } from '../services/service-places.ts';
import {
  isShownAs,
  matchesSearch,
  readServicesQuery,
  type ShownState,
  servicesUrl,
  shownStates,
} from '../services/services-query.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { type AdminServiceView, adminServicePage } from './service-page.ts';
import { adminServicesPage, type ListedService } from './services-page.ts';

/** Services on a page: with the plots in each row, more would make a page of more than 100 KiB. */
const pageSize = 25;
/** Lines of output on the page of a service. */
const shownLines = 200;
/** How long a form waits for what it asked for to show. */
const patienceMs = 1_500;
const pollMs = 25;

/** `/hub/admin/services`: how every service is, and the page of each. */
export function adminServiceRoutes(
  admin: AdminContext,
  deps: {
    readonly registry: Pick<
      ServiceRegistry,
      'services' | 'find' | 'statusOf' | 'restart' | 'startService' | 'stopService' | 'outputOf'
    >;
    readonly roles: Pick<RoleStore, 'list'>;
    readonly catalogue: ScopeCatalogue;
    /** `Hub.allow_managed_services_at_runtime`. */
    readonly allowsManaged: boolean;
    readonly loads: Pick<LoadReader, 'read' | 'readHere'>;
    /** Path of the API, with a slash at its end. */
    readonly apiPath: string;
    readonly log: Logger;
  },
): void {
  const { pages } = admin;
  const { registry } = deps;

  /** Throws `not_found` as the API does. */
  function serviceFor(ctx: Context, who: Admin, scope: string): Service {
    const name = parameter(ctx, 'service');
    who.require(scope, { kind: 'service', name });
    const service = registry.find(name);
    if (service !== undefined) return service;
    throw new HubError('not_found', text`There is no such service.`);
  }

  const withLoad = (listed: ListedService): ListedService => ({
    ...listed,
    load: deps.loads.readHere(loadKeys.service(listed.status.name)),
  });

  admin.get('/admin/services', async (ctx, who) => {
    const { caller, may } = who;
    const filter = listFilter(caller.scopes, 'list:services');
    if (filter === undefined) who.require('list:services');
    const query = readServicesQuery(new URLSearchParams(ctx.querystring));
    const positions = new Map(registry.services().map(({ name }, position) => [name, position]));
    const found = registry.services().flatMap((service): ListedService[] => {
      const { name } = service;
      const status = registry.statusOf(name);
      const isListed = filter === 'all' || filter?.services.has(name) === true;
      if (status === undefined || !isListed || !may('read:services', { kind: 'service', name })) {
        return [];
      }
      const info = serviceInfo(service, pages.languageOf(ctx));
      if (!matchesSearch(query.search, { ...info, name })) return [];
      const displayName = info.title === name ? undefined : info.title;
      return [{ displayName, url: addressOf(service), status }];
    });
    const shownAs = (show: ShownState | undefined) =>
      show === undefined ? found : found.filter(({ status }) => isShownAs(show, status.state));
    const matching = shownAs(query.show);
    const positionOf = ({ status: { name } }: ListedService) => positions.get(name) ?? 0;
    const edge =
      query.edge &&
      placeOf(query.edge.key, (name) => {
        const position = positions.get(name);
        return position === undefined ? undefined : [position];
      });
    const part = await readPageOf(
      matching,
      { offset: (query.page - 1) * pageSize, limit: pageSize, edge: edge && query.edge },
      (service) => positionOf(service) - (edge?.[0] ?? 0),
    );
    const services = part.items.map(withLoad);
    const { total } = part;
    if (services.length === 0 && total > 0) {
      const page = lastPageOf(total, pageSize);
      return ctx.redirect(
        servicesUrl(pages.urls.adminServices, { ...query, page, edge: undefined }),
      );
    }
    const states = Object.keys(shownStates) as ShownState[];
    const page = adminServicesPage({
      layout: await pages.formLayoutFor(ctx),
      query,
      services,
      borders: bordersOf(part, (service) => placeKey([positionOf(service)], service.status.name)),
      total,
      size: pageSize,
      counts: Object.fromEntries([
        ['all', found.length],
        ...states.map((state) => [state, shownAs(state).length] as const),
      ]) as Record<ShownState | 'all', number>,
      mayAdd: may('admin:services'),
    });
    pages.send(ctx, page);
  });

  admin.get('/admin/services/:service', async (ctx, who) => {
    const service = serviceFor(ctx, who, 'read:services');
    const { name } = service;
    const status = registry.statusOf(name);
    if (status === undefined) throw new HubError('not_found', text`There is no such service.`);
    const span = spanIn(ctx.query);
    const isManager = who.may('admin:services', { kind: 'service', name });
    const isAdded = service.source === 'api' && isManager;
    const page = adminServicePage({
      layout: await pages.formLayoutFor(ctx),
      service,
      status,
      url: addressOf(service),
      openedBy: who.may('read:roles') ? await rolesThatOpen(service) : undefined,
      load: await deps.loads.read(loadKeys.service(name), span),
      span,
      // What a service writes may hold anything; reading it is a right of its own.
      output: isManager && service.kind === 'managed' ? await outputOf(name) : undefined,
      may: {
        run: isManager,
        edit: isAdded && (service.kind === 'external' || deps.allowsManaged),
        delete: isAdded,
      },
    });
    pages.send(ctx, page);
  });

  /** Names of the roles whose holders may open a service. */
  async function rolesThatOpen({ accessScopes }: Service): Promise<readonly string[]> {
    const roles = await deps.roles.list();
    return roles
      .filter(({ scopes }) => {
        const expanded = expandForAnyHolder(scopes, deps.catalogue);
        return accessScopes.some((scope) => expanded.has(scope));
      })
      .map(({ name }) => name);
  }

  async function outputOf(name: string): Promise<AdminServiceView['output']> {
    const url = `${deps.apiPath}services/${encodeURIComponent(name)}/output`;
    try {
      const { lines = [] } = (await registry.outputOf(name)?.read(undefined, shownLines)) ?? {};
      return { url, lines };
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      return { url, lines: [], problem: translated(error.shown.message) };
    }
  }

  const shownOf = (name: string) => {
    const { state, since } = registry.statusOf(name) ?? {};
    return `${state} ${since?.getTime()}`;
  };

  /** Between two runs a service that is wanted may be stopped for a moment. */
  const isShown = (name: string, action: string, before: string) =>
    shownOf(name) !== before && (action === 'stop' || registry.statusOf(name)?.state !== 'stopped');

  const deeds = {
    start: {
      act: registry.startService,
      done: (name: string) => text`${name} is starting.`,
      said: 'started',
    },
    stop: {
      act: registry.stopService,
      done: (name: string) => text`${name} is stopping.`,
      said: 'stopped',
    },
    restart: {
      act: registry.restart,
      done: (name: string) => text`${name} is restarting.`,
      said: 'restarted',
    },
  } as const;
  for (const [action, { act, done, said }] of Object.entries(deeds)) {
    admin.post(
      `/admin/services/:service/${action}`,
      async (ctx, who) => {
        const { name } = serviceFor(ctx, who, 'admin:services');
        const before = shownOf(name);
        await act(name);
        // The page that comes next would else show it as it was.
        const endMs = performance.now() + patienceMs;
        while (!isShown(name, action, before) && performance.now() < endMs) await sleep(pollMs);
        deps.log.info({ service: name, by: who.login.user.name }, `a service is ${said} by hand`);
        const notice = { kind: 'good', text: done(name) } as const;
        pages.redirectWithNotice(ctx, pages.urls.adminService(name), notice);
      },
      { needsRecentLogin: false },
    );
  }
}

/** Where users open a service, when it has pages. */
function addressOf({ url, origin = '', prefix }: Service): string | undefined {
  return url === undefined ? undefined : origin + prefix;
}
