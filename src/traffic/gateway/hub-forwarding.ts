import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HopProof } from '../../cluster/instances/hop-proof.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import { type ClientAddressReader, canonicalPath } from '../../platform/http/request-address.ts';
import type { Forwarder, ForwardOptions } from '../proxy/forwarder.ts';
import { hopHeader } from '../proxy/response-headers.ts';
import type { Route } from '../proxy/route.ts';
import type { WebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import { type HubLink, hubIsAway } from './hub-link.ts';

/** Passes on to the hub what a gateway process has no route for. */
export interface HubForwarding {
  handleRequest(req: IncomingMessage, res: ServerResponse): void;
  handleUpgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

/** What the hub is called in the proofs of its gateways. */
export const hopToHub = 'hub';

/** How long a request waits for a hub that is away. */
const patienceMs = 10_000;

export function createHubForwarding(deps: {
  readonly link: Pick<HubLink, 'isConnected' | 'untilConnected'>;
  readonly route: Route;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  readonly webSockets: Pick<WebSocketForwarder, 'forward'>;
  readonly proof: Pick<HopProof, 'make'>;
  readonly clientAddress: ClientAddressReader;
  readonly answers: ErrorAnswers;
}): HubForwarding {
  const { link, route, proof, clientAddress, answers } = deps;

  function optionsFor(req: IncomingMessage): ForwardOptions {
    const client = clientAddress(req);
    // The feed shows that the hub was there: if it takes no connection now, it is coming back.
    route.lastAnswerMs = performance.now();
    const path = canonicalPath(req.url ?? '')?.target ?? '/';
    const request = { to: hopToHub, method: req.method ?? 'GET', target: path };
    return { route, path, client, headersToAdd: [hopHeader, proof.make(request, client)] };
  }

  return {
    handleRequest(req, res) {
      const forward = () => deps.forwarder.forward(req, res, optionsFor(req));
      if (link.isConnected()) {
        forward();
        return;
      }
      void link.untilConnected(patienceMs).then((isThere) => {
        if (isThere) forward();
        else answers.respond(req, res, hubIsAway(), { isExpected: true });
      });
    },

    handleUpgrade(req, socket, head) {
      const forward = () => deps.webSockets.forward(req, socket, head, optionsFor(req));
      if (link.isConnected()) {
        forward();
        return;
      }
      void link.untilConnected(patienceMs).then((isThere) => {
        if (isThere) forward();
        else answers.respondOnSocket(req, socket, hubIsAway());
      });
    },
  };
}
