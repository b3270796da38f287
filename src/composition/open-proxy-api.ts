import { createHubServer } from '../platform/http/server/http-server.ts';
import { listen } from '../platform/http/server/listener.ts';
import { createProxyApi } from '../traffic/gateway/proxy-api.ts';
import { createSavedRoutes } from '../traffic/gateway/saved-routes.ts';
import type { RouteTable } from '../traffic/proxy/route-table.ts';
import { instanceNameOf } from './describe-instance.ts';
import type { Foundation } from './foundation.ts';
import type { Site } from './site.ts';

/** Listens for a JupyterHub that uses the hub as its proxy (`Hub.proxy_api`). */
export async function openProxyApi(
  {
    config,
    database,
    stores,
    log,
    disposables,
  }: Pick<Foundation, 'config' | 'database' | 'stores' | 'log' | 'disposables'>,
  {
    routes,
    site,
  }: {
    readonly routes: RouteTable;
    readonly site: Pick<Site, 'clientAddress' | 'errorAnswers'>;
  },
): Promise<void> {
  const { Hub, basePath, publicUrl } = config;
  const api = Hub.proxy_api;
  if (api === undefined) return;
  const savedRoutes = disposables.use(
    createSavedRoutes({ settings: stores.settings, instanceName: instanceNameOf(config), log }),
  );
  const server = createHubServer({
    config: config.Proxy,
    log,
    request: createProxyApi({
      routes,
      token: api.auth_token,
      host: api.host,
      basePath,
      ownUrls: [Hub.bind_url, Hub.hub_bind_url, api.bind_url, publicUrl.href],
      answers: site.errorAnswers,
      clientAddress: site.clientAddress,
      audit: database.audit,
      log,
      kept: await savedRoutes.load(),
      onChange: savedRoutes.saveSoon,
    }),
  });
  disposables.defer(() => server.close(0));
  await listen(server.server, api.bind_url, { key: 'Hub.proxy_api.bind_url' });
}
