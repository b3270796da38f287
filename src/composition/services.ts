import { resolve } from 'node:path';
import type { Instance } from '../cluster/instances/instance.ts';
import { createServiceTokens } from '../identity/oauth/tokens/token-verifier.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import type { OutputPart, OutputPosition } from '../spawning/processes/output-feed.ts';
import { createExtraRoutes } from '../traffic/proxy/extra-routes.ts';
import { createRouteTable } from '../traffic/proxy/route-table.ts';
import { createManagedProcessStore } from '../workloads/services/managed-process-store.ts';
import { followRuntimeServices } from '../workloads/services/runtime-services-follower.ts';
import {
  createServiceOwnerStore,
  type ServiceHost,
  serviceOutputOperation,
} from '../workloads/services/service-owner-store.ts';
import { createServiceRegistry } from '../workloads/services/service-registry.ts';
import { createServiceRoutes } from '../workloads/services/service-routes.ts';
import { createServiceStopStore } from '../workloads/services/service-stop-store.ts';
import type { openInstances } from './cluster.ts';
import type { Foundation } from './foundation.ts';

/** What ignores SIGTERM takes some seconds to end. */
const endLeftTimeoutMs = 15_000;

/**
 * The proxy table and the services in it: they begin with `registry.start()`, and stop after the listeners and before
 * the stores.
 */
export async function openServices(hub: Foundation & Awaited<ReturnType<typeof openInstances>>) {
  const { config, database, instance, runtimeServiceStore, log, disposables } = hub;
  const { caller, channel, directory: instances } = hub;
  const { Hub, directory } = config;
  const ask = (host: ServiceHost, operation: string, params: object) =>
    caller.call(instances.addressOf(host.id) ?? { ...host, url: undefined }, operation, params);
  const routes = createRouteTable({
    reservedPrefixes: [hub.urls.hub],
    sessionIdAliases: hub.jupyterHub.sessionIdAliases,
  });
  const extraRoutes = createExtraRoutes(routes);
  extraRoutes.apply(config);
  const tokens = createServiceTokens();
  const listed = await runtimeServiceStore.list();
  const registry = disposables.use(
    createServiceRegistry({
      ...hub,
      configs: Hub.services,
      runtimeServices: listed,
      directory,
      logDirectory: resolve(directory, Hub.log_dir),
      prefixes: Hub.environment_prefixes,
      inherited: hub.environment,
      routes: createServiceRoutes(routes),
      store: createManagedProcessStore(database, instance.id),
      owners: createServiceOwnerStore(database, instance.id),
      stops: createServiceStopStore(database),
      lease: instance,
      remote: {
        restart: async (host, name) => void (await ask(host, 'restart-service', { name })),
        async endLeft({ id, machineId }, name, tag) {
          const isThere = (each: Instance) =>
            each.isLive && each.machineId === machineId && each.id !== id;
          // What was read before may still show the one that is gone as there.
          const there = (await instances.refresh()).find(isThere);
          if (there === undefined) {
            throw new HubError('unavailable', text`No instance runs on its machine.`);
          }
          const address = instances.addressOf(there.id) ?? { ...there, url: undefined };
          await caller.call(
            address,
            'end-leftover',
            { name, tag },
            { timeoutMs: endLeftTimeoutMs },
          );
        },
        readOutput: async (host, name, after, max, withinSeconds) =>
          (await ask(host, serviceOutputOperation, {
            name,
            after,
            max,
            withinSeconds,
          })) as OutputPart,
      },
      tokens,
      announceChange: () => database.announceChange({ kind: 'rights_changed' }),
    }),
  );
  /** Only what runs here: an instance that asks is behind when it runs elsewhere now. */
  function here(params: unknown): string {
    const { name } = params as { name: string };
    if (registry.statusOf(name)?.isHere === true) return name;
    throw new HubError(
      'unavailable',
      text`The service "${name}" has just moved to another instance.`,
      {
        retryAfterSeconds: 1,
      },
    );
  }
  channel.handle('restart-service', (params) => registry.restart(here(params)));
  channel.handle('end-leftover', (params) => {
    const { name, tag } = params as { name: string; tag: string };
    return registry.endLeft(name, tag);
  });
  channel.handle(serviceOutputOperation, async (params) => {
    const { after, max, withinSeconds } = params as {
      after?: OutputPosition;
      max?: number;
      withinSeconds?: number;
    };
    return registry.outputOf(here(params))?.read(after, max, withinSeconds);
  });
  const runtimeServices = disposables.use(
    followRuntimeServices({
      store: runtimeServiceStore,
      database,
      services: listed,
      apply: registry.applyRuntime,
      log,
    }),
  );
  return {
    routes,
    extraRoutes,
    serviceTokens: tokens,
    registry,
    serviceNames: () => registry.services().map(({ name }) => name),
    runtimeServices,
  };
}
