import { instanceNameOf } from '../cluster/instances/describe-instance.ts';
import { createHubServer } from '../platform/http/server/http-server.ts';
import { listen } from '../platform/http/server/listener.ts';
import { createProxyApi } from '../traffic/gateway/proxy-api.ts';
import { createSavedRoutes } from '../traffic/gateway/saved-routes.ts';
import type { Served } from './traffic.ts';

/** Listens for a JupyterHub that uses the hub as its proxy (`Hub.proxy_api`). */
export async function openProxyApi(hub: Served): Promise<void> {
  const { config, log, disposables } = hub;
  const { Hub, publicUrl } = config;
  const api = Hub.proxy_api;
  if (api === undefined) return;
  const savedRoutes = disposables.use(
    createSavedRoutes({ ...hub, instanceName: instanceNameOf(config) }),
  );
  const server = createHubServer({
    config: config.Proxy,
    log,
    request: createProxyApi({
      ...hub,
      token: api.auth_token,
      host: api.host,
      ownUrls: [Hub.bind_url, Hub.hub_bind_url, api.bind_url, publicUrl.href],
      answers: hub.errorAnswers,
      kept: await savedRoutes.load(),
      onChange: savedRoutes.saveSoon,
    }),
  });
  disposables.defer(() => server.close(0));
  await listen(server.server, api.bind_url, { key: 'Hub.proxy_api.bind_url' });
}
