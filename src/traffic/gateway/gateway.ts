import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HopProof } from '../../cluster/instances/hop-proof.ts';
import { HubError } from '../../platform/errors.ts';
import { writeAnswer } from '../../platform/http/answer.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import { type HopSender, markHop } from '../../platform/http/request-address.ts';
import { recordOf } from '../../platform/http/request-log.ts';
import { text } from '../../platform/texts/text.ts';
import type { Forwarder } from '../proxy/forwarder.ts';
import { hopHeader } from '../proxy/response-headers.ts';
import type { Route } from '../proxy/route.ts';
import type { WebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import type { ForwardAuth } from './forward-auth.ts';
import { asHubError, noWebSocket } from './gateway-answers.ts';
import type { HopForwarder } from './hop-forwarder.ts';
import type { Traffic } from './traffic.ts';
import {
  type Answered,
  createVerdict,
  type Forwarded,
  type Verdict,
  type VerdictParts,
} from './verdict.ts';

/** The entry to everything behind the hub. */
export interface Gateway {
  /** Takes a request that belongs to a route; false leaves it to the hub's own pages. */
  handleRequest(req: IncomingMessage, res: ServerResponse): boolean;
  /** Takes every opening handshake: nothing of the hub itself speaks WebSocket. */
  handleUpgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

/** What the gateway does with a verdict; the two ways share the decision and nothing else. */
export function createGateway(
  deps: Omit<VerdictParts, 'hasHops'> & {
    readonly forwardAuth: ForwardAuth;
    readonly forwarder: Pick<Forwarder, 'forward'>;
    readonly webSockets: Pick<WebSocketForwarder, 'forward'>;
    /** For routes that lead to another instance of the hub; without it there are none. */
    readonly hops: Pick<HopForwarder, 'forward' | 'forwardUpgrade'> | undefined;
    readonly answers: ErrorAnswers;
    readonly traffic: Traffic;
    /** Takes a WebSocket that belongs to no route; without it there is none. */
    readonly leaveUpgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
    /** The name of the user whose login has a session id, while it is open. */
    readonly userOfSession: (sessionId: string) => Promise<string | undefined>;
  },
): Gateway {
  const { forwardAuth, forwarder, webSockets, hops, answers, traffic, leaveUpgrade } = deps;
  const verdictFor = createVerdict({ ...deps, hasHops: hops !== undefined });

  /** Counts a request that is to be forwarded, which a limit of its route may still stand against. */
  function withinLimits(verdict: Verdict): Verdict {
    if (verdict.kind !== 'forward') return verdict;
    const { route, client, userName } = verdict.options;
    const error = route.limiter?.takeRequest({ userName, address: client.address });
    if (error === undefined) return verdict;
    return { kind: 'answer', route, visitor: { userName }, error, isExpected: true };
  }

  function writeRequest(req: IncomingMessage, res: ServerResponse, verdict: Verdict): boolean {
    recordOf(req).trace?.decided(verdict.kind, routeOf(verdict)?.prefix);
    switch (verdict.kind) {
      case 'hub':
        return false;
      case 'forward':
        forwarder.forward(req, res, verdict.options);
        return true;
      case 'hop':
        hops?.forward(req, res, verdict.options);
        return true;
      case 'forward-auth':
        noteRequest(req, res, {});
        forwardAuth.answer(req, res, verdict.way);
        return true;
      case 'answer': {
        const { error, answer, headers = {}, page, isExpected = false } = verdict;
        noteRequest(req, res, verdict);
        if (answer !== undefined) {
          writeAnswer(req, res, answer);
          return true;
        }
        for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
        const options = { isExpected, ...(page !== undefined && { page: () => page }) };
        answers.respond(req, res, error, options);
        return true;
      }
    }
  }

  function writeUpgrade(req: IncomingMessage, socket: Socket, head: Buffer, verdict: Verdict) {
    recordOf(req).trace?.decided(verdict.kind, routeOf(verdict)?.prefix);
    switch (verdict.kind) {
      case 'hop':
        hops?.forwardUpgrade(req, socket, head, verdict.options);
        return;
      case 'forward':
        forwardUpgrade(req, socket, head, verdict);
        return;
      case 'answer':
        traffic.followUpgrade(req, socket, verdict.route).visitor = verdict.visitor ?? {};
        answers.respondOnSocket(req, socket, verdict.error);
        return;
      case 'hub':
        if (leaveUpgrade === undefined) refuseUpgrade(req, socket);
        else leaveUpgrade(req, socket, head);
        return;
      case 'forward-auth':
        refuseUpgrade(req, socket);
    }
  }

  function refuseUpgrade(req: IncomingMessage, socket: Socket): void {
    traffic.followUpgrade(req, socket, undefined);
    answers.respondOnSocket(req, socket, noWebSocket());
  }

  function forwardUpgrade(
    req: IncomingMessage,
    socket: Socket,
    head: Buffer,
    { options, isUnasked }: Forwarded,
  ): void {
    const { route, sessionId, userName, clientId } = options;
    traffic.followUpgrade(req, socket, route).visitor = { userName, sessionId, clientId };
    const forward = (countedFor: string | undefined) =>
      webSockets.forward(req, socket, head, { ...options, userName: countedFor });
    // Where no one was asked: for the limit of one user, not a right.
    if (isUnasked && route.owner.kind === 'server') {
      forward(route.owner.userName);
    } else if (isUnasked && sessionId !== undefined) {
      deps
        .userOfSession(sessionId)
        .then(forward, (thrown: unknown) =>
          answers.respondOnSocket(req, socket, asHubError(thrown)),
        );
    } else {
      forward(userName);
    }
  }

  /** Counts a request that the gateway answers in place of the upstream. */
  function noteRequest(
    req: IncomingMessage,
    res: ServerResponse,
    { route, visitor = {} }: Partial<Pick<Answered, 'route' | 'visitor'>>,
  ): void {
    const closed = () => traffic.requestClosed(req, res, { route, ...visitor });
    // The client may have left while it was decided whether it may pass.
    if (res.closed) closed();
    else res.once('close', closed);
  }

  return {
    handleRequest(req, res) {
      const verdict = verdictFor(req);
      if (!(verdict instanceof Promise)) return writeRequest(req, res, withinLimits(verdict));
      void verdict.then((decided) => writeRequest(req, res, withinLimits(decided)));
      return true;
    },

    handleUpgrade(req, socket, head) {
      const verdict = verdictFor(req);
      if (verdict instanceof Promise) {
        void verdict.then((decided) => writeUpgrade(req, socket, head, withinLimits(decided)));
      } else {
        writeUpgrade(req, socket, head, withinLimits(verdict));
      }
    },
  };
}

function routeOf(verdict: Verdict): Route | undefined {
  if (verdict.kind === 'forward') return verdict.options.route;
  return verdict.kind === 'answer' ? verdict.route : undefined;
}

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
