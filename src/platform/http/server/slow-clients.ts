import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ProxyConfig } from '../../config/config.ts';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import { answerErrorOnSocket } from '../socket-response.ts';

/** Ends connections of clients that send or take next to nothing. */
export interface SlowClients {
  /** Checks a connection with the answer under way on it; to be called every few seconds. */
  check(socket: Socket, response: ServerResponse, nowMs: number): void;
}

interface Progress {
  readonly response: ServerResponse;
  bodyBytes: number;
  bodySinceMs: number;
  takenBytes: number;
  takenSinceMs: number;
}

/** What a client must at least send of its body within the time it has. */
const minBodyBytes = 1_024;

/**
 * The check costs nothing between two polls, and finds what timeouts for silence do
 * not: a body that trickles in byte by byte, and an answer that the client does not read.
 */
export function createSlowClients(
  config: Pick<ProxyConfig, 'client_body_timeout' | 'client_read_timeout'>,
): SlowClients {
  const bodyTimeoutMs = config.client_body_timeout * 1000;
  const readTimeoutMs = config.client_read_timeout * 1000;
  const progressOf = new WeakMap<Socket, Progress>();

  function noteBody(socket: Socket, progress: Progress, nowMs: number): void {
    progress.bodyBytes = socket.bytesRead;
    progress.bodySinceMs = nowMs;
  }

  /** An application that has begun to answer or does not read on has a say in how fast a body comes. */
  function sendsTooSlowly(socket: Socket, progress: Progress, nowMs: number): boolean {
    const { req, headersSent } = progress.response;
    const isRead = req.readableFlowing === true || req.listenerCount('readable') > 0;
    const isAwaited = isRead && !socket.isPaused() && !req.complete && !headersSent;
    if (!isAwaited || socket.bytesRead - progress.bodyBytes >= minBodyBytes) {
      noteBody(socket, progress, nowMs);
      return false;
    }
    return bodyTimeoutMs > 0 && nowMs - progress.bodySinceMs >= bodyTimeoutMs;
  }

  function takesTooSlowly(socket: Socket, progress: Progress, nowMs: number): boolean {
    const taken = socket.bytesWritten - socket.writableLength;
    if (socket.writableLength === 0 || taken !== progress.takenBytes) {
      progress.takenBytes = taken;
      progress.takenSinceMs = nowMs;
      return false;
    }
    return readTimeoutMs > 0 && nowMs - progress.takenSinceMs >= readTimeoutMs;
  }

  return {
    check(socket, response, nowMs) {
      let progress = progressOf.get(socket);
      if (progress?.response !== response) {
        progress = {
          response,
          bodyBytes: socket.bytesRead,
          bodySinceMs: nowMs,
          takenBytes: socket.bytesWritten - socket.writableLength,
          takenSinceMs: nowMs,
        };
        progressOf.set(socket, progress);
        return;
      }
      if (sendsTooSlowly(socket, progress, nowMs)) {
        answerErrorOnSocket(
          socket,
          new HubError('request_timeout', text`The body of the request did not arrive in time.`),
        );
        // Whatever the response still writes must not follow the answer.
        socket.destroySoon();
      } else if (takesTooSlowly(socket, progress, nowMs)) {
        socket.destroy();
      }
    },
  };
}
