import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HopProof } from '../../cluster/instances/hop-proof.ts';
import { HubError } from '../../platform/errors.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import { type HopSender, markHop } from '../../platform/http/hops.ts';
import { text } from '../../platform/texts/text.ts';
import { hopHeader } from '../proxy/hop-headers.ts';
import type { Gateway } from './gateway.ts';

/** Takes what other instances pass on to the internal listener, as if it had come to the public one. */
export interface HopReceiver {
  /** False for a request that is not passed on. */
  receive(req: IncomingMessage, res: ServerResponse): boolean;
  receiveUpgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
  /** Believes a gateway process that reaches the hub at its public address; anything else is as it was. */
  noteGateway(req: IncomingMessage): void;
}

/** Whether a request says that it was passed on; proven is nothing yet. */
export function isHop({ headers }: IncomingMessage): boolean {
  return headers[hopHeader] !== undefined;
}

export function createHopReceiver(deps: {
  /** Who may pass requests on, to what name, and how they prove themselves. */
  readonly senders: readonly {
    readonly kind: HopSender;
    readonly to: string;
    readonly proof: Pick<HopProof, 'read'>;
  }[];
  readonly gateway: Gateway;
  /** Answers what belongs to no route. */
  readonly answerHub: RequestListener;
  readonly answers: ErrorAnswers;
}): HopReceiver {
  const { senders, gateway, answerHub, answers } = deps;

  function isGenuine(req: IncomingMessage, only?: HopSender): boolean {
    const { method = '', url: target = '' } = req;
    for (const { kind, to, proof } of senders) {
      if (only !== undefined && kind !== only) continue;
      const client = proof.read({ to, method, target }, String(req.headers[hopHeader]));
      if (client === undefined) continue;
      markHop(req, client, kind);
      return true;
    }
    return false;
  }

  return {
    receive(req, res) {
      if (!isHop(req)) return false;
      if (!isGenuine(req)) answers.respond(req, res, forged(), { wantsPage: false });
      else if (!gateway.handleRequest(req, res)) answerHub(req, res);
      return true;
    },

    receiveUpgrade(req, socket, head) {
      if (isGenuine(req)) gateway.handleUpgrade(req, socket, head);
      else answers.respondOnSocket(req, socket, forged());
    },

    noteGateway(req) {
      if (isHop(req)) isGenuine(req, 'gateway');
    },
  };
}

function forged(): HubError {
  return new HubError(
    'forbidden',
    text`No instance or gateway of this hub has passed this request on.`,
    {
      hint: text`Ask for it at the public address.`,
    },
  );
}
