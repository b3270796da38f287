import type { LoadReader } from '../cluster/instances/load-reader.ts';
import type { FirstRun } from '../identity/accounts/first-run.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { type LoadSeries, loadKeys } from '../platform/metrics/load-history.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { hasChoices } from '../workloads/servers/spawn-options.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import type { Service } from '../workloads/services/service.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import type { PlacedStatus } from '../workloads/services/service-status.ts';
import type { Sharing } from '../workloads/sharing/sharing.ts';
import { type OperationRequest, operation, view } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly servers: Pick<UserServers, 'choicesFor'>;
  readonly sharing: Pick<Sharing, 'ofOthersSharedWith'>;
  readonly firstRun: Pick<FirstRun, 'isShownTo' | 'dismiss'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
  readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'>;
}

/** Most shared servers on the page, those of several groups counted several times. */
const maxShared = 100;

/** Where people arrive, and what they may open. */
export const homePageOperations = [
  view({ id: 'viewHome', path: '/home', scopes: 'authenticated' }).handle(
    async ({ caller, may }, deps: Deps) => {
      const user = await deps.users.getByName(caller.owner.name);
      const [servers, choices, shared, isFirstRun] = await Promise.all([
        deps.serverStore.listOfUser(user.name),
        deps.servers.choicesFor(user.name),
        deps.sharing.ofOthersSharedWith(user, { offset: 0, limit: maxShared }),
        deps.firstRun.isShownTo(user),
      ]);
      const loads: ReadonlyMap<string, LoadSeries | undefined> = new Map(
        servers.map(({ id }) => [id, deps.loads.readHere(loadKeys.server(id))]),
      );
      return {
        userName: user.name,
        servers,
        /** By the id of the server. */
        loads,
        hasSpawnOptions: hasChoices(choices),
        shared,
        services: openServices(may, deps),
        isFirstRun,
      };
    },
  ),
  operation({
    id: 'dismissFirstRun',
    audience: 'page',
    method: 'POST',
    path: '/home/dismiss-first-run',
    audit: { none: 'It hides a hint.' },
    tag: 'hub',
    summary: 'Show the first steps no more',
    scopes: 'authenticated',
    answers: { 204: { description: 'They are gone.' } },
  }).handle(async ({ caller }, { users, firstRun }: Deps) => {
    await firstRun.dismiss((await users.getByName(caller.owner.name)).id);
    return { status: 204 };
  }),
  view({ id: 'viewOpenServices', path: '/services', scopes: 'authenticated' }).handle(
    ({ may }, deps: Pick<Deps, 'registry'>) => openServices(may, deps),
  ),
];

/** A service that the caller may open, and how it is. */
export interface OpenService {
  readonly service: Service;
  readonly status: PlacedStatus | undefined;
}

/** In the order of the configuration. */
function openServices(
  may: OperationRequest<never>['may'],
  { registry }: Pick<Deps, 'registry'>,
): OpenService[] {
  return registry
    .services()
    .filter(({ url, isBehindProxy }) => url !== undefined || isBehindProxy)
    .filter(({ isDisplayed }) => isDisplayed)
    .filter(({ name }) => may('access:services', { kind: 'service', name }))
    .map((service) => ({ service, status: registry.statusOf(service.name) }));
}
