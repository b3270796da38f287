import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import {
  afterEarlierAnswers,
  mayLackHeaders,
  prepareReadingAgain,
} from '../../undocumented/node-http.ts';
import { errorAnswer, writeAnswer } from '../answer.ts';
import { toErrorResponse } from '../error-response.ts';
import { framingProblem } from '../message-framing.ts';
import { recordOf } from '../request-record.ts';
import { answerErrorOnSocket } from '../socket-response.ts';
import { isOpeningHandshake } from '../websocket-handshake.ts';

export interface MessageHandlers {
  request(req: IncomingMessage, res: ServerResponse): void;
  /** Takes an opening handshake (RFC 6455 §4.2.1); without it there are no WebSockets. */
  upgrade?: ((req: IncomingMessage, socket: Socket, head: Buffer) => void) | undefined;
  /** Which handshakes are taken; all, unless given. */
  takesUpgrade?: ((req: IncomingMessage) => boolean) | undefined;
}

/**
 * Lets a new server serve requests and WebSockets. A request to upgrade that is not taken is served as the plain
 * request that it also is (RFC 9110 §7.8), and its connection closes behind the last answer to what was received.
 */
export function serveMessages(server: Server, handlers: MessageHandlers): void {
  const { request, upgrade, takesUpgrade = () => true } = handlers;
  const readAgain = prepareReadingAgain(server);
  /** The last answer on each connection that closes, and whether its request would let it stay open. */
  const lastAnswers = new WeakMap<Socket, { res?: ServerResponse; staysOpen?: boolean }>();

  function serve(req: IncomingMessage, res: ServerResponse): void {
    const problem = framingProblem(req);
    if (problem === undefined) {
      request(req, res);
      return;
    }
    res.shouldKeepAlive = false;
    writeAnswer(req, res, errorAnswer(toErrorResponse(problem), { requestId: recordOf(req).id }));
  }

  server.on('request', (req, res) => {
    const last = lastAnswers.get(req.socket);
    if (last === undefined) {
      serve(req, res);
      return;
    }
    if (last.res?.headersSent === false) last.res.shouldKeepAlive = last.staysOpen === true;
    lastAnswers.set(req.socket, { res, staysOpen: res.shouldKeepAlive });
    res.shouldKeepAlive = false;
    // The rest of the packet is read first: an answer of this very turn would close the connection before.
    process.nextTick(serve, req, res);
  });
  server.on('checkContinue', (req, res) => {
    continueWhenRead(req, res);
    server.emit('request', req, res);
  });
  server.on('upgrade', (req, duplex, head) => {
    const socket = duplex as Socket;
    // Node has removed its listeners, and a reset without a listener ends the process.
    socket.on('error', ignore);
    afterEarlierAnswers(socket, () => {
      if (upgrade !== undefined && isOpeningHandshake(req) && takesUpgrade(req)) {
        upgrade(req, socket, head);
      } else if (mayLackHeaders(req)) {
        answerErrorOnSocket(socket, headersTooLarge());
      } else {
        lastAnswers.set(socket, {});
        readAgain(req, socket, head);
        socket.off('error', ignore);
      }
    });
  });
  server.on('connect', (_req, duplex) => {
    const socket = duplex as Socket;
    socket.on('error', ignore);
    afterEarlierAnswers(socket, () =>
      answerErrorOnSocket(
        socket,
        new HubError('method_not_allowed', text`The hub is not a forward proxy.`),
      ),
    );
  });
}

/**
 * Asks for the body when somebody begins to read it (RFC 9110 §10.1.1), so that what is refused by its head is never
 * sent. Then the connection closes: nobody could know whether the body still comes.
 */
function continueWhenRead(req: IncomingMessage, res: ServerResponse): void {
  const { _read: read } = req;
  const { shouldKeepAlive } = res;
  res.shouldKeepAlive = false;
  req._read = (size) => {
    req._read = read;
    if (!res.headersSent) {
      res.shouldKeepAlive = shouldKeepAlive;
      res.writeContinue();
    }
    read.call(req, size);
  };
}

/** The refusal of a head that is too large. */
export function headersTooLarge(): HubError {
  return new HubError('header_too_large', text`The request headers are too large.`, {
    hint: text`Remove the cookies of this site and try again.`,
  });
}

function ignore(): void {}
