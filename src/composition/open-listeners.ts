import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type Koa from 'koa';
import { HubError } from '../platform/errors.ts';
import { answerErrorOnSocket } from '../platform/http/answer.ts';
import { createHubServer } from '../platform/http/server/http-server.ts';
import {
  createFairListener,
  createInternalListener,
  listen,
} from '../platform/http/server/listener.ts';
import { passedSockets } from '../platform/http/server/passed-sockets.ts';
import { createRedirectServer } from '../platform/http/tls/redirect-server.ts';
import { text } from '../platform/texts/text.ts';
import { createHopReceiver, isHop } from '../traffic/gateway/gateway.ts';
import { hopToHub } from '../traffic/gateway/hub-forwarding.ts';
import { createPublicServer } from '../traffic/gateway/public-server.ts';
import type { Foundation } from './foundation.ts';
import type { Site } from './site.ts';
import { inTraces } from './tracing.ts';
import type { Served } from './traffic.ts';

/** The addresses of the hub, taken before anything else and answering 503 until there is a hub. */
export interface Listeners {
  readonly publicServer: Server;
  readonly internalServer: Server;
  /** Answers from now on, and until the stack is disposed of. */
  serve(
    hub: Pick<
      Served,
      | 'gateway'
      | 'streams'
      | 'gateways'
      | 'gatewaySecrets'
      | 'instance'
      | 'channel'
      | 'hopProof'
      | 'tracing'
    > & {
      readonly app: Koa;
    },
  ): void;
}

const internalGraceMs = 5_000;

type Answer = (req: IncomingMessage, res: ServerResponse) => void;
type Upgrade = (req: IncomingMessage, socket: Socket, head: Buffer) => void;

/** Listens for browsers on `Hub.bind_url`, and for servers and services on `Hub.hub_bind_url`. */
export async function openListeners(
  {
    config,
    log,
    disposables,
    certificates,
    internalCertificates,
    environment,
  }: Pick<
    Foundation,
    'config' | 'log' | 'disposables' | 'certificates' | 'internalCertificates' | 'environment'
  >,
  { urls, apiPath, errorAnswers }: Site,
): Promise<Listeners> {
  const { Hub, Proxy: proxyConfig } = config;
  const passed = passedSockets(environment);
  const refuse: Answer = (req, res) =>
    errorAnswers.respond(req, res, starting(), { isExpected: true });
  let answerPublic = refuse;
  let answerInternal = refuse;
  let upgrade: Upgrade = (_req, socket) => answerErrorOnSocket(socket, starting());
  let upgradeInternal = upgrade;

  const publicServer = createPublicServer({
    config,
    hubPath: urls.hub,
    certificates,
    log,
    request: (req, res) => answerPublic(req, res),
    upgrade: (req, socket, head) => upgrade(req, socket, head),
  });
  const internalServer = createHubServer({
    config: proxyConfig,
    log,
    certificates: internalCertificates,
    request: (req, res) => answerInternal(req, res),
    upgrade: (req, socket, head) => upgradeInternal(req, socket, head),
    takesUpgrade: isHop,
  });
  // What is closed in order further below is closed already when these have their turn.
  disposables.defer(() => internalServer.close(0));
  await listen(internalServer.server, Hub.hub_bind_url, { key: 'Hub.hub_bind_url', passed });
  disposables.defer(() => publicServer.close(0));
  // Otherwise gateway processes do.
  if (Hub.gateways === 0) {
    await listen(publicServer.server, Hub.bind_url, {
      key: 'Hub.bind_url',
      passed,
      socketMode: Hub.bind_socket_mode,
    });
  }
  if (Hub.redirect_bind_url !== undefined && certificates !== undefined) {
    const redirecting = createRedirectServer({ config, certificates, log });
    await listen(redirecting.server, Hub.redirect_bind_url, {
      key: 'Hub.redirect_bind_url',
      passed,
    });
    disposables.defer(() => redirecting.close(0));
  }

  return {
    publicServer: publicServer.server,
    internalServer: internalServer.server,
    serve(hub) {
      const { app, gateway, streams, gateways, gatewaySecrets, instance, channel, hopProof } = hub;
      const [ticketSecret] = gatewaySecrets;
      if (ticketSecret !== undefined) publicServer.shareTickets(ticketSecret);
      const urgentPaths = ['health', 'ready'].flatMap((name) => [urls.hub + name, apiPath + name]);
      const answer = createFairListener(app.callback(), urgentPaths, [
        publicServer.server,
        internalServer.server,
      ]);
      const hops = createHopReceiver({
        senders: [
          { kind: 'instance', to: instance.id, proof: hopProof },
          { kind: 'gateway', to: hopToHub, proof: gateways.hopProof },
        ],
        gateway,
        answerHub: answer,
        answers: errorAnswers,
      });
      ({ request: answerPublic, upgrade } = inTraces(hub.tracing, {
        request(req, res) {
          hops.noteGateway(req);
          if (!gateway.handleRequest(req, res)) answer(req, res);
        },
        upgrade(req, socket, head) {
          hops.noteGateway(req);
          gateway.handleUpgrade(req, socket, head);
        },
      }));
      const answerApi = createInternalListener({
        answerHub: answer,
        apiPath,
        hubPath: urls.hub,
        errorAnswers,
      });
      ({ request: answerInternal, upgrade: upgradeInternal } = inTraces(hub.tracing, {
        request(req, res) {
          if (!channel.receive(req, res) && !hops.receive(req, res)) answerApi(req, res);
        },
        upgrade: hops.receiveUpgrade,
      }));
      const graceMs = Hub.gateways > 0 ? Hub.shutdown_timeout * 1000 : internalGraceMs;
      disposables.defer(() => internalServer.close(graceMs));
      disposables.defer(() => publicServer.close(Hub.shutdown_timeout * 1000, streams));
    },
  };
}

function starting(): HubError {
  return new HubError('unavailable', text`The hub is starting.`, { retryAfterSeconds: 1 });
}
