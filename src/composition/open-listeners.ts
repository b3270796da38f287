import type { Server } from 'node:http';
import type Koa from 'koa';
import { createTrustedPeer } from '../http/client-address.ts';
import { createConnectionLimits } from '../http/connection-limits.ts';
import { createFairListener } from '../http/server/fair-listener.ts';
import { createHubServer } from '../http/server/http-server.ts';
import { createInternalListener } from '../http/server/internal-listener.ts';
import { listen } from '../http/server/listener.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

const internalGraceMs = 5_000;

/** Listens for browsers on `Hub.bind_url`, and for servers and services on `Hub.hub_bind_url`. */
export async function openListeners(
  { config, log, disposables }: Foundation,
  deps: {
    readonly app: Koa;
    readonly site: Site;
    readonly gateway: ComposedGateway;
  },
): Promise<{ readonly publicServer: Server; readonly internalServer: Server }> {
  const { Hub, Proxy: proxyConfig } = config;
  const { gateway, streams } = deps.gateway;
  const { urls, apiPath, errorAnswers } = deps.site;
  const answer = createFairListener(deps.app.callback(), [`${urls.hub}health`, `${apiPath}health`]);
  const publicServer = createHubServer({
    config: proxyConfig,
    log,
    limits: createConnectionLimits({
      perAddress: proxyConfig.max_connections_per_address,
      inAll: proxyConfig.max_connections,
      isTrustedPeer: createTrustedPeer(Hub.trusted_proxies),
    }),
    request(req, res) {
      if (!gateway.handleRequest(req, res)) answer(req, res);
    },
    upgrade: gateway.handleUpgrade,
  });
  const internalServer = createHubServer({
    config: proxyConfig,
    log,
    request: createInternalListener({
      answerHub: answer,
      apiPath,
      hubPath: urls.hub,
      errorAnswers,
    }),
  });
  await listen(internalServer.server, Hub.hub_bind_url, 'Hub.hub_bind_url');
  disposables.defer(() => internalServer.close(internalGraceMs));
  await listen(publicServer.server, Hub.bind_url, 'Hub.bind_url');
  disposables.defer(() => publicServer.close(Hub.shutdown_timeout * 1000, streams));
  return { publicServer: publicServer.server, internalServer: internalServer.server };
}
