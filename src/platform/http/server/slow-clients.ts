import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { ProxyConfig } from '../../config/config.ts';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import { answerErrorOnSocket } from '../answer.ts';
import { readerOf } from '../request-log.ts';

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

/** Bounds what the hub holds of answers that one reader has not taken, on all connections together. */
export interface UnreadLimit {
  /** Cuts connections of readers that are above the bound; to be called every second or so. */
  check(sockets: Iterable<Socket>, nowMs: number): void;
}

interface Unread {
  readonly socket: Socket;
  readonly bytes: number;
  /** Since when nothing has been taken. */
  readonly sinceMs: number;
}

interface UnreadProgress {
  takenBytes: number;
  sinceMs: number;
}

/** Of each reader, the connections that have stood still for longest are cut first. */
export function createUnreadLimit({
  maxBytes,
  log,
}: {
  /** 0 for no limit. */
  readonly maxBytes: number;
  readonly log: Logger;
}): UnreadLimit {
  const progressOf = new WeakMap<Socket, UnreadProgress>();

  function standsStillSince(socket: Socket, nowMs: number): number {
    const takenBytes = socket.bytesWritten - socket.writableLength;
    const progress = progressOf.get(socket);
    if (progress?.takenBytes === takenBytes) return progress.sinceMs;
    progressOf.set(socket, { takenBytes, sinceMs: nowMs });
    return nowMs;
  }

  function cut(reader: string, unread: Unread[], heldBytes: number): void {
    let leftBytes = heldBytes;
    let connections = 0;
    unread.sort((one, other) => one.sinceMs - other.sinceMs || other.bytes - one.bytes);
    for (const { socket, bytes } of unread) {
      if (leftBytes <= maxBytes) break;
      socket.destroy();
      leftBytes -= bytes;
      connections += 1;
    }
    log.warn(
      { reader: reader.trim(), connections, unreadBytes: heldBytes },
      'connections of slow reader cut',
    );
  }

  return {
    check(sockets, nowMs) {
      if (maxBytes === 0) return;
      const byReader = new Map<string, { bytes: number; readonly unread: Unread[] }>();
      for (const socket of sockets) {
        const bytes = socket.writableLength;
        if (bytes === 0) continue;
        const reader = readerOf(socket);
        const held = byReader.get(reader) ?? { bytes: 0, unread: [] };
        byReader.set(reader, held);
        held.bytes += bytes;
        held.unread.push({ socket, bytes, sinceMs: standsStillSince(socket, nowMs) });
      }
      for (const [reader, { bytes, unread }] of byReader) {
        if (bytes > maxBytes) cut(reader, unread, bytes);
      }
    },
  };
}
