import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What is noted of a request when it arrives. */
export interface RequestRecord {
  /** Ties the answer, what the upstream was told and the lines of the log together. */
  readonly id: string;
  /** By the clock of `performance.now()`. */
  readonly startedAtMs: number;
  /** Its connection; Node takes it off the request now and then. */
  readonly socket: Socket;
  /** What had been sent on its connection before. */
  readonly sentBytesBefore: number;
}

/** How a request ended. */
export interface RequestOutcome {
  /** `clientLeftStatus` when the client left before its answer began. */
  readonly status: number;
  readonly seconds: number;
  /** Sent to the client, head and body. */
  readonly sentBytes: number;
}

/** What access logs customarily note for a client that did not wait for its answer. */
export const clientLeftStatus = 499;

/** An id of the client's own that is safe in a header, a page and a log. */
const safeId = /^[A-Za-z0-9._:+/=-]{1,128}$/;

const key = Symbol('request record');
type RecordedRequest = IncomingMessage & { [key]?: RequestRecord };

/**
 * The record of a request, made when it is first asked for, which is when the request arrives. A client
 * that sends an `X-Request-Id` in a safe form keeps it, so that its own log fits the hub's.
 */
export function recordOf(req: RecordedRequest): RequestRecord {
  let record = req[key];
  if (record === undefined) {
    const sent = req.headers['x-request-id'];
    record = {
      id: typeof sent === 'string' && safeId.test(sent) ? sent : randomUUID(),
      startedAtMs: performance.now(),
      socket: req.socket,
      sentBytesBefore: req.socket.bytesWritten,
    };
    req[key] = record;
  }
  return record;
}

/** How a request ended; to be asked when its response is closed. */
export function outcomeOf(req: IncomingMessage, res: ServerResponse): RequestOutcome {
  const { startedAtMs, socket, sentBytesBefore } = recordOf(req);
  return {
    status: res.headersSent ? res.statusCode : clientLeftStatus,
    seconds: (performance.now() - startedAtMs) / 1000,
    sentBytes: socket.bytesWritten - sentBytesBefore,
  };
}
