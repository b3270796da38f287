import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import {
  afterEarlierAnswers,
  mayLackHeaders,
  prepareReadingAgain,
} from '../../undocumented/node-http.ts';
import { answerErrorOnSocket, errorAnswer, toErrorResponse, writeAnswer } from '../answer.ts';
import { recordOf } from '../request-log.ts';
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

/**
 * Why a request is refused by its head alone, whatever it asks for: a version other than 1.0 and 1.1 (RFC 9110 §2.5),
 * a transfer coding other than `chunked` (RFC 9112 §6.1, §6.3), or a length that not every reader can count
 * (RFC 9110 §8.6). Node's parser refuses other framing errors itself. Undefined when nothing is wrong.
 */
function framingProblem({ httpVersion, headers }: IncomingMessage): HubError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return new HubError(
      'version_not_supported',
      text`This HTTP version is not supported; use HTTP/1.1.`,
    );
  }
  const { 'transfer-encoding': coding, 'content-length': length } = headers;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    // If the last coding is another one, the end of the body cannot be known.
    return /(?:^|[\s,])chunked$/i.test(coding)
      ? new HubError(
          'not_implemented',
          text`This transfer coding is not supported; use chunked alone.`,
        )
      : new HubError('bad_request', text`The last transfer coding is not chunked.`);
  }
  if (length !== undefined && !Number.isSafeInteger(Number(length))) {
    return new HubError('bad_request', text`The Content-Length is too large.`);
  }
  return undefined;
}

/** Requests that may wait on a connection for the answers to those before them (RFC 9112 §9.3.2). */
const maxWaiting = 64;

const waitingKey = Symbol('waiting requests');
type CountedSocket = Socket & { [waitingKey]?: number };

/**
 * Hands on the requests of a connection one after the other, each when the one before it has its answer: a client that
 * reads nothing then costs one answer, however many it asks for. One that asks for too many at once is cut off.
 */
export function oneByOne(listener: RequestListener): RequestListener {
  return (req, res) => {
    holdBody(req);
    if (res.socket !== null) {
      listener(req, res);
      return;
    }
    const socket: CountedSocket = req.socket;
    const waiting = (socket[waitingKey] ?? 0) + 1;
    socket[waitingKey] = waiting;
    if (waiting > maxWaiting) socket.destroy();
    res.once('socket', () => {
      socket[waitingKey] = (socket[waitingKey] ?? 0) - 1;
      listener(req, res);
    });
  };
}

/**
 * Reads no more of the body of a request that has just arrived than came with its head, until someone reads it. Node
 * would read 64 KiB of body, in whatever number of pieces: chunks of one byte (RFC 9112 §7.1) make it ten megabytes.
 */
function holdBody(request: IncomingMessage): void {
  if (request.headers['transfer-encoding'] === undefined) return;
  request.socket.pause();
  setImmediate(resumeIfComplete, request);
}

/** Of a body that is all there, no more is asked for, and nothing else would start the connection again. */
function resumeIfComplete(request: IncomingMessage): void {
  if (request.complete) request.socket.resume();
}

/** Longer ones are rare, and are not kept for each connection. */
const maxSharedLength = 2_048;

/**
 * Gives each request the Cookie header of the one before on its connection, where both are equal: the same text as one
 * string. What is remembered by that header is found by a hash of it, which the engine works out once for a string;
 * for one of 800 characters that takes a microsecond.
 */
export function createCookieSharing(): (req: Pick<IncomingMessage, 'headers' | 'socket'>) => void {
  const lastCookies = new WeakMap<Socket, string>();
  return ({ headers, socket }) => {
    const { cookie } = headers;
    if (cookie === undefined || cookie.length > maxSharedLength) return;
    const { connection = socket } = socket as Socket & { readonly connection?: Socket };
    const last = lastCookies.get(connection);
    if (last === cookie) headers.cookie = last;
    else lastCookies.set(connection, cookie);
  };
}
