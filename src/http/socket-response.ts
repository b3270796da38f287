import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { HubError } from '../errors.ts';
import { errorBody, toErrorResponse } from './error-response.ts';

/** How long a client has to take in the answer before its connection is cut. */
const graceMs = 2_000;

/**
 * Answers an upgrade request with a plain HTTP response and closes the connection: after an upgrade
 * there is no `ServerResponse` to do so, and a socket that is merely ended stays open on its other half.
 */
export function answerOnSocket(
  socket: Socket,
  answer: {
    readonly status: number;
    /** Names and values in turn, without the framing. */
    readonly headers?: readonly string[];
    readonly body?: string;
  },
): void {
  // Since the upgrade nobody else listens, and an error that nobody hears ends the process.
  socket.on('error', () => {});
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, headers = [], body = '' } = answer;
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    head += `${headers[index]}: ${oneLine(headers[index + 1] ?? '')}\r\n`;
  }
  head += `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  // Unread input would turn the close into a reset, which can overtake the answer.
  socket.resume();
  socket.once('end', () => socket.destroySoon());
  const timer = setTimeout(() => socket.destroy(), graceMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.end(head + body);
}

/** Answers an upgrade request with an error in the JSON shape of the API. */
export function answerErrorOnSocket(socket: Socket, error: HubError): void {
  const response = toErrorResponse(error);
  const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store'];
  if (response.retryAfterSeconds !== undefined) {
    headers.push('Retry-After', String(response.retryAfterSeconds));
  }
  answerOnSocket(socket, { status: response.status, headers, body: errorBody(response) });
}

function oneLine(value: string): string {
  return value.replace(/[\r\n]/g, ' ');
}
