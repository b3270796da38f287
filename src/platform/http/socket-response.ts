import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HubError } from '../errors.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { toErrorResponse } from './error-response.ts';
import { noteUpgradeStatus } from './upgrade-status.ts';

/** How long a client has to take in the answer before its connection is cut. */
const graceMs = 2_000;

/**
 * Answers an upgrade request with a plain HTTP response and closes the connection: after an upgrade
 * there is no `ServerResponse` to do so, and a socket that is merely ended stays open on its other half.
 */
export function answerOnSocket(socket: Duplex, { status, headers, body }: Answer): void {
  // Since the upgrade there is no other listener, and an error without a listener ends the process.
  socket.on('error', () => {});
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  noteUpgradeStatus(socket, status);
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'connection') continue;
    for (const item of [value].flat()) head += `${name}: ${oneLine(item)}\r\n`;
  }
  head += `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`;
  // Unread input would turn the close into a reset, which can overtake the answer.
  socket.resume();
  socket.once('end', () => destroySoon(socket));
  const timer = setTimeout(() => socket.destroy(), graceMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.end(head + body);
}

/** Answers on a socket with an error in the JSON shape of the API. */
export function answerErrorOnSocket(socket: Duplex, error: HubError, requestId?: string): void {
  answerOnSocket(socket, errorAnswer(toErrorResponse(error), { requestId }));
}

/** Closes when everything is written; what is not a network socket is closed at once. */
function destroySoon(socket: Duplex & Partial<Pick<Socket, 'destroySoon'>>): void {
  if (socket.destroySoon === undefined) socket.destroy();
  else socket.destroySoon();
}

function oneLine(value: string): string {
  return value.replace(/[\r\n]/g, ' ');
}
