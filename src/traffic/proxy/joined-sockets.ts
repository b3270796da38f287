import type { Socket } from 'node:net';
import { atEndOfTurn } from '../../platform/concurrency/turns.ts';

/** What happens to a pair of joined sockets, as their owner needs to know it. */
export interface SocketPairOwner {
  /** The upstream has sent something, which is on its way to the client. */
  upstreamSent(chunk: Buffer): void;
  /** The client has, to the upstream. */
  clientSent(chunk: Buffer): void;
  /** One side sends no more, or is closed. */
  sideEnded(): void;
}

/** Each chunk costs some hundred bytes beside what is in it. */
const maxUnsentChunks = 256;

const pairKey = Symbol('pair');
const unsentKey = Symbol('unsent chunks');

interface Pair {
  readonly client: PairedSocket;
  readonly upstream: PairedSocket;
  readonly owner: SocketPairOwner;
}

/** With the chunks written to it since all was sent. */
type PairedSocket = Socket & { [pairKey]?: Pair; [unsentKey]?: number };

/**
 * Joins the sockets of a client and an upstream: what one receives is sent to the other, as fast as
 * that one takes it. Listeners are shared by all pairs, which keeps an idle one small.
 */
export function joinSockets(client: Socket, upstream: Socket, owner: SocketPairOwner): void {
  const pair: Pair = { client, upstream, owner };
  for (const socket of [client, upstream] as PairedSocket[]) {
    socket[pairKey] = pair;
    socket.on('data', onData).on('drain', onDrain).on('end', onEnd).on('close', onEnd);
    socket.on('error', ignore);
    socket.resume();
  }
}

/** Lets nothing more pass between the sockets; what the client still sends is thrown away. */
export function separateSockets(client: Socket): void {
  const pair = (client as PairedSocket)[pairKey];
  if (pair === undefined) return;
  for (const socket of [pair.client, pair.upstream]) {
    delete socket[pairKey];
    socket.resume();
  }
}

function otherOf(socket: PairedSocket, { client, upstream }: Pair): PairedSocket {
  return socket === client ? upstream : client;
}

function onData(this: PairedSocket, chunk: Buffer): void {
  const pair = this[pairKey];
  if (pair === undefined) return;
  if (this === pair.upstream) pair.owner.upstreamSent(chunk);
  else pair.owner.clientSent(chunk);
  const other = otherOf(this, pair);
  if (!other.writable) return;
  if (other.writableCorked === 0) {
    other.cork();
    atEndOfTurn(uncork, other);
  }
  const unsent = other.writableLength === 0 ? 1 : (other[unsentKey] ?? 0) + 1;
  other[unsentKey] = unsent;
  if (unsent < maxUnsentChunks) {
    if (!other.write(chunk)) this.pause();
  } else {
    this.pause();
    // Of so few bytes, no `drain` tells when they are sent.
    other.write(chunk, () => this.resume());
  }
}

function uncork(socket: Socket): void {
  socket.uncork();
}

function onDrain(this: PairedSocket): void {
  const pair = this[pairKey];
  if (pair !== undefined) otherOf(this, pair).resume();
}

function onEnd(this: PairedSocket): void {
  const pair = this[pairKey];
  if (pair === undefined) return;
  otherOf(this, pair).end();
  pair.owner.sideEnded();
}

/** A socket that fails is closed, which is heard of. */
function ignore(): void {}
