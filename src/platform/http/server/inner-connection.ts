import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

type Done = (error?: Error | null) => void;

/** One side of a connection within the process: what is written to it is read from the other side. */
class Side extends Duplex {
  /** Never 0, which is said of clients that were silent from the beginning. */
  bytesRead = 1;
  bytesWritten = 0;
  #other: Side | undefined;
  #taken: Done | undefined;

  static connect(one: Side, other: Side): void {
    one.#other = other;
    other.#other = one;
  }

  override _read(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    const other = this.#other;
    if (other === undefined || other.destroyed) {
      done(new Error('the other side has left'));
      return;
    }
    this.bytesWritten += chunk.length;
    other.bytesRead += chunk.length;
    other.#taken = done;
    // Whoever writes may use the memory again once it is taken, as with a network.
    other.push(Buffer.from(chunk));
  }

  override _final(done: Done): void {
    this.#other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this._read();
    if (!this.writableFinished) this.#other?.destroy();
    done(error);
  }
}

/** The side of a server: with what servers ask of a socket beyond a stream, though nothing here takes time. */
class ServerSide extends Side {
  readonly encrypted = true;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;

  constructor({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
  }

  destroySoon(): void {
    this.end(() => this.destroy());
  }

  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }
}

/** Makes a connection between a client and a server within this process, which came by `under`. */
export function connectWithin(under: Pick<Socket, 'remoteAddress' | 'remotePort'>): {
  readonly client: Socket;
  readonly server: Socket;
} {
  const [client, server] = [new Side(), new ServerSide(under)];
  Side.connect(client, server);
  return { client: client as unknown as Socket, server: server as unknown as Socket };
}
