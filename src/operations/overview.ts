import type { Instance } from '../cluster/instances/instance.ts';
import type { InstanceDirectory } from '../cluster/instances/instance-directory.ts';
import { placesOf } from '../cluster/instances/instance-directory.ts';
import type { NoticeStore } from '../cluster/notices/notice-store.ts';
import type { Lockouts } from '../identity/authentication/login-throttle.ts';
import { type Caller, listFilter } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import type { Config } from '../platform/config/config.ts';
import type { AuditStore } from '../platform/store/audit-store.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import { findLastBackup, oldBackupDays } from '../platform/store/last-backup.ts';
import type { SettingStore } from '../platform/store/setting-store.ts';
import type { ServerCountStore } from '../workloads/servers/server-count-store.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import { view } from './operation.ts';
import { visibleServices } from './services.ts';
import { knownOfUsers, usersFilterFor, usualUsers } from './users-query.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'countByStatus'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'>;
  readonly directory: Pick<InstanceDirectory, 'list'>;
  readonly instance: Pick<Instance, 'id' | 'machineId'>;
  readonly gateways: {
    list(): { readonly following: readonly { readonly isLocal: boolean }[] };
  };
  readonly readiness: { check(): Promise<Readonly<Record<string, string | undefined>>> };
  readonly lockouts: Pick<Lockouts, 'list'>;
  readonly notices: Pick<NoticeStore, 'current'>;
  readonly settings: Pick<SettingStore, 'find'>;
  readonly database: Pick<HubDatabase, 'now'>;
  readonly serverCounts: ServerCountStore;
  readonly config: { readonly Hub: Pick<Config['Hub'], 'gateways' | 'active_server_limit'> };
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
  const filter = usersFilterFor(caller, await authorizer.membershipFor(scopes), usualUsers);
  return { counts: await users.countByStatus(filter), known: knownOfUsers(scopes) };
}

/** How many servers take a place of those that can run at once; undefined without a limit. */
async function serversOf({ serverCounts, config }: Deps) {
  const { active_server_limit: limit } = config.Hub;
  if (limit === 0) return undefined;
  const { failed: _failed, ...active } = await serverCounts.countByState();
  return { active: Object.values(active).reduce((sum, count) => sum + count, 0), limit };
}

async function hubOf({
  directory,
  instance,
  config,
  gateways,
  readiness,
  settings,
  database,
}: Deps): Promise<{
  readonly instances: ReturnType<typeof placesOf>;
  readonly missingGateways: number;
  readonly problems: readonly string[];
  /** Of the last backup, where one was ever tried. */
  readonly backup: 'good' | 'old' | 'failed' | undefined;
}> {
  const report = Object.values(await readiness.check());
  return {
    instances: placesOf(directory.list(), instance),
    missingGateways: missingOf(config.Hub.gateways, gateways),
    problems: report.filter((problem) => problem !== undefined),
    backup: await backupOf(settings, database.now()),
  };
}

/** How many of the hub's own gateways do not follow it. */
function missingOf(count: number, gateways: Deps['gateways']): number {
  if (count === 0) return 0;
  return Math.max(0, count - gateways.list().following.filter(({ isLocal }) => isLocal).length);
}

async function backupOf(settings: Deps['settings'], nowMs: number) {
  const { at = 0, failedAt = 0 } = await findLastBackup(settings);
  if (failedAt > at) return 'failed';
  if (at === 0) return undefined;
  return nowMs - at > oldBackupDays * 86_400_000 ? 'old' : 'good';
}
