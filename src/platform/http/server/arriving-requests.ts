import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';

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
