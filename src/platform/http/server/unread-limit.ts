import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { readerOf } from '../reader-of.ts';

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

interface Progress {
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
  const progressOf = new WeakMap<Socket, Progress>();

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
