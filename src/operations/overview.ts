import type { Instance } from '../cluster/instances/instance.ts';
import type { InstanceDirectory } from '../cluster/instances/instance-directory.ts';
import { placesOf } from '../cluster/instances/instance-overview.ts';
import type { NoticeStore } from '../cluster/notices/notice-store.ts';
import type { Lockouts } from '../identity/authentication/login-throttle.ts';
import { type Caller, listFilter } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import type { AuditStore } from '../platform/store/audit-store.ts';
import type { ServerCountStore } from '../workloads/servers/server-count-store.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import { view } from './operation.ts';
import { visibleServices } from './services.ts';
import { knownOfUsers, usersFilterFor } from './users-query.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'countByStatus'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'>;
  readonly directory: Pick<InstanceDirectory, 'list'>;
  readonly instance: Pick<Instance, 'id' | 'machineId'>;
  /** How many of `Hub.gateways` do not follow this hub. */
  readonly missingGateways: () => number;
  readonly readiness: { check(): Promise<Readonly<Record<string, string | undefined>>> };
  readonly lockouts: Pick<Lockouts, 'list'>;
  readonly notices: Pick<NoticeStore, 'current'>;
  readonly serverCounts: ServerCountStore;
  /** `Hub.active_server_limit`. */
  readonly activeServerLimit: number;
  readonly auditLog: Pick<AuditStore, 'list'>;
}

const latestEntries = 8;

/** How everything is, as far as a caller may know it: what they may not is undefined. */
export const overviewOperations = [
  view({ id: 'viewOverview', path: '/admin', scopes: 'authenticated' }).handle(
    async ({ caller, may }, deps: Deps) => {
      const [users, hub, latest] = await Promise.all([
        usersOf(caller, deps),
        may('read:hub') ? hubOf(deps) : undefined,
        may('read:audit') ? deps.auditLog.list({ filter: {}, limit: latestEntries }) : undefined,
      ]);
      const rows = listFilter(caller.scopes, 'list:services');
      return {
        users,
        hub,
        servers: may('read:hub') ? await serversOf(deps) : undefined,
        services: rows && visibleServices({ rows, may }, deps).map(({ status }) => status),
        lockouts: may('admin:users') ? (await deps.lockouts.list()).length : undefined,
        maintenance: (await deps.notices.current()).maintenance,
        latest: latest?.entries,
      };
    },
  ),
];

async function usersOf(caller: Caller, { users, authorizer }: Pick<Deps, 'users' | 'authorizer'>) {
  const { scopes } = caller;
  if (listFilter(scopes, 'list:users') === undefined) return undefined;
  const any = { search: '', status: undefined, group: undefined, sort: 'name', size: 1 } as const;
  const filter = usersFilterFor(caller, await authorizer.membershipFor(scopes), any);
  return { counts: await users.countByStatus(filter), known: knownOfUsers(scopes) };
}

/** How many servers take a place of those that can run at once; undefined without a limit. */
async function serversOf({ serverCounts, activeServerLimit: limit }: Deps) {
  if (limit === 0) return undefined;
  const { failed: _failed, ...active } = await serverCounts.countByState();
  return { active: Object.values(active).reduce((sum, count) => sum + count, 0), limit };
}

async function hubOf({ directory, instance, missingGateways, readiness }: Deps): Promise<{
  readonly instances: ReturnType<typeof placesOf>;
  readonly missingGateways: number;
  readonly problems: readonly string[];
}> {
  const report = Object.values(await readiness.check());
  return {
    instances: placesOf(directory.list(), instance),
    missingGateways: missingGateways(),
    problems: report.filter((problem) => problem !== undefined),
  };
}
