import { isDeepStrictEqual } from 'node:util';
import type { Service } from './service.ts';

/** What a reload changes, by name, for the log. */
export interface ServiceDifference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Changed in what the process or its address depends on. */
  readonly restarted: readonly string[];
  /** Changed otherwise, while running on. */
  readonly updated: readonly string[];
}

/** Compares the services before and after a reload. */
export function compareServices(
  before: readonly Service[],
  after: readonly Service[],
): ServiceDifference {
  const formerByName = new Map(before.map((service) => [service.name, service]));
  const names = new Set(after.map((service) => service.name));
  const added: string[] = [];
  const restarted: string[] = [];
  const updated: string[] = [];
  for (const service of after) {
    const former = formerByName.get(service.name);
    if (former === undefined) added.push(service.name);
    else if (needsRestart(former, service)) restarted.push(service.name);
    else if (!isDeepStrictEqual(withoutToken(former), withoutToken(service)))
      updated.push(service.name);
  }
  const removed = before.map((service) => service.name).filter((name) => !names.has(name));
  return { added, removed, restarted, updated };
}

/** Whether the difference reaches the process: its start, its environment, or how it is watched. */
function needsRestart(former: Service, service: Service): boolean {
  return !isDeepStrictEqual(startOf(former), startOf(service));
}

function startOf(service: Service) {
  const { kind, url, prefix, host, launch, healthPath, readyTimeoutMs } = service;
  const { apiToken, clientId, redirectUris, allowedScopes } = service;
  const shared = { kind, url, prefix, host, healthPath, readyTimeoutMs };
  // Only a managed service is told these by the hub; an external one goes on as it is.
  const reported = { token: apiToken?.reveal(), clientId, redirectUris, allowedScopes };
  return kind === 'managed' ? { ...shared, launch, ...reported } : shared;
}

function withoutToken({ apiToken, ...service }: Service) {
  // Secrets hide their value from comparison too.
  return { ...service, token: apiToken?.reveal() };
}
