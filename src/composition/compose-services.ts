import { resolve } from 'node:path';
import { createServiceTokens } from '../oauth/tokens/service-tokens.ts';
import { addExtraRoutes } from '../proxy/extra-routes.ts';
import { createRouteTable } from '../proxy/route-table.ts';
import { createServiceRegistry } from '../services/service-registry.ts';
import { createServiceRoutes } from '../services/service-routes.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

/** The proxy table and the services in it. */
export type ComposedServices = ReturnType<typeof composeServices>;

/** They begin with `registry.start()`, and stop after the listeners and before the stores. */
export function composeServices(
  { config, database, stores, hubId, log, disposables }: Foundation,
  deps: {
    readonly site: Site;
    /** The hub's own environment. */
    readonly environment: Readonly<Record<string, string | undefined>>;
  },
) {
  const { Hub, basePath, directory } = config;
  const { origins, urls, apiUrl, jupyterHub } = deps.site;
  const routes = createRouteTable({
    reservedPrefixes: [urls.hub],
    sessionIdAliases: jupyterHub.sessionIdAliases,
  });
  addExtraRoutes(routes, config);
  const tokens = createServiceTokens();
  const registry = disposables.use(
    createServiceRegistry({
      configs: Hub.services,
      hubId,
      directory,
      logDirectory: resolve(directory, Hub.log_dir),
      prefixes: Hub.environment_prefixes,
      inherited: deps.environment,
      apiUrl,
      origins,
      basePath,
      routes: createServiceRoutes(routes),
      store: stores.managedProcesses,
      tokens,
      announceChange: () => database.announceChange(),
      log,
    }),
  );
  return { routes, tokens, registry };
}
