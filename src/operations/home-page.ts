import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import type { FirstRun } from '../identity/accounts/first-run.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { type LoadSeries, loadKeys } from '../platform/metrics/load-history.ts';
import type { AuditStore } from '../platform/store/audit-store.ts';
import { text } from '../platform/texts/text.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { hasChoices } from '../workloads/servers/spawn-options.ts';
import type { StartAtLogin } from '../workloads/servers/start-at-login.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import type { FavouriteStore } from '../workloads/services/favourite-store.ts';
import type { Service } from '../workloads/services/service.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import type { PlacedStatus } from '../workloads/services/service-status.ts';
import type { Sharing } from '../workloads/sharing/sharing.ts';
import type { Budgets } from '../workloads/usage/budgets.ts';
import { type OperationRequest, operation, view } from './operation.ts';
import { ownUserOf } from './own-user.ts';
import { budgetsOf } from './usage.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly servers: Pick<UserServers, 'choicesFor'>;
  readonly startAtLogin: Pick<StartAtLogin, 'of'>;
  readonly sharing: Pick<Sharing, 'ofOthersSharedWith'>;
  readonly firstRun: Pick<FirstRun, 'isShownTo' | 'dismiss'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
  readonly budgets: Pick<Budgets, 'ofUser'>;
  readonly favourites: FavouriteStore;
  readonly auditLog: Pick<AuditStore, 'list'>;
  readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'>;
}

/** Most shared servers on the page, those of several groups counted several times. */
const maxShared = 100;

/** Where people arrive, and what they may open. */
export const homePageOperations = [
  view({ id: 'viewHome', path: '/home', scopes: 'authenticated' }).handle(
    async ({ caller, may }, deps: Deps) => {
      const user = await deps.users.getByName(caller.owner.name);
      const [servers, choices, shared, isFirstRun, services, lastLogin, budgets, startAtLogin] =
        await Promise.all([
          deps.serverStore.listOfUser(user.name),
          deps.servers.choicesFor(user.name),
          deps.sharing.ofOthersSharedWith(user, { offset: 0, limit: maxShared }),
          deps.firstRun.isShownTo(user),
          openServices(user, may, deps),
          loginBefore(user.name, caller.sessionId, deps),
          budgetsOf(user, deps),
          deps.startAtLogin.of(user),
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
        profiles: choices.profiles,
        shared,
        services,
        lastLogin,
        isFirstRun,
        budgets,
        startAtLogin,
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
  }),
  view({ id: 'viewOpenServices', path: '/services', scopes: 'authenticated' }).handle(
    ({ may, caller }, deps: ServiceDeps) => openServices(ownUserOf(caller), may, deps),
  ),
  operation({
    id: 'markOwnFavourite',
    audience: 'page',
    method: 'POST',
    path: '/services/favourite',
    audit: { none: 'It sorts what the user sees.' },
    tag: 'services',
    summary: 'Show a service before others, or no longer',
    scopes: 'authenticated',
    body: z.object({ service: z.string(), favourite: z.boolean() }),
    answers: { 204: { description: 'It is marked.' } },
  }).handle(async ({ caller, may, body }, deps: ServiceDeps) => {
    if (!accessible(may, deps).some(({ name }) => name === body.service))
      throw new HubError('not_found', text`You can open no service of this name.`);
    await deps.favourites.set(ownUserOf(caller).id, body.service, body.favourite);
  }),
];

/** The last login of a user but that of the caller itself; undefined where none is recorded. */
async function loginBefore(
  userName: string,
  sessionId: string | undefined,
  { auditLog }: Pick<Deps, 'auditLog'>,
): Promise<{ readonly at: Date; readonly address: string | undefined } | undefined> {
  const filter = { target: userName, action: 'login', result: 'done' } as const;
  const { entries } = await auditLog.list({ filter, limit: 2 });
  const before = entries.find(({ detail }) => detail['session'] !== sessionId);
  return before && { at: before.at, address: before.actor.address };
}

/** A service that the caller may open, and how it is. */
export interface OpenService {
  readonly service: Service;
  readonly status: PlacedStatus | undefined;
  readonly isFavourite: boolean;
  /** Undefined for one that needs no login of the user, too. */
  readonly lastUsedAt: Date | undefined;
}

/** What services that a user may open are read from. */
export type ServiceDeps = Pick<Deps, 'registry' | 'favourites'>;

/** In the order of the configuration. */
export async function openServices(
  user: Pick<User, 'id' | 'name'>,
  may: OperationRequest<never>['may'],
  { registry, favourites }: ServiceDeps,
): Promise<OpenService[]> {
  const [marked, uses] = await Promise.all([
    favourites.listOfUser(user.id),
    favourites.lastUsesOf(user),
  ]);
  return accessible(may, { registry }).map((service) => ({
    service,
    status: registry.statusOf(service.name),
    isFavourite: marked.has(service.name),
    lastUsedAt: uses.get(service.clientId),
  }));
}

function accessible(
  may: OperationRequest<never>['may'],
  { registry }: Pick<Deps, 'registry'>,
): Service[] {
  return registry
    .services()
    .filter(({ url, isBehindProxy }) => url !== undefined || isBehindProxy)
    .filter(({ isDisplayed }) => isDisplayed)
    .filter(({ name }) => may('access:services', { kind: 'service', name }));
}
