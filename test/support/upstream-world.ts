import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type OnReadOpts,
  type Server,
  type Socket,
} from 'node:net';
import { afterEach, beforeEach } from 'vitest';
import type { UpstreamTimeouts } from '../../src/traffic/proxy/http1/upstream-connection.ts';
import type {
  ExchangeControl,
  UpstreamHandler,
  UpstreamRequest,
} from '../../src/traffic/proxy/http1/upstream-message.ts';
import { UpstreamPool } from '../../src/traffic/proxy/http1/upstream-pool.ts';
import { eventually } from '../attacks/proxy-harness.ts';
import { freePort } from './free-port.ts';

/** The answer of an upstream that does what it should. */
export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

type ReadInto = OnReadOpts & { readonly buffer: Buffer };

/** A pool that ends with the test. */
export type DisposableUpstreamPool = UpstreamPool & Disposable;

/** An upstream on a free port for each test of the file, and the connections to it. */
export interface UpstreamWorld {
  /** What it does with each piece of a request. */
  answer: (socket: Socket, text: string) => void;
  /** Those of the upstream, the first one first. */
  readonly sockets: Socket[];
  readonly server: Server;
  /** What the clock of the pools shows. */
  nowMs: number;
  poolOf(options?: {
    readonly maxConnections?: number;
    readonly timeouts?: Partial<UpstreamTimeouts>;
    readonly open?: (onread: ReadInto) => Socket;
  }): DisposableUpstreamPool;
}

export function useUpstream(): UpstreamWorld {
  let server: Server;
  let sockets: Socket[] = [];

  beforeEach(async () => {
    sockets = [];
    world.nowMs = 0;
    world.answer = (socket) => socket.write(ok);
    server = createServer((socket) => {
      sockets.push(socket);
      socket
        .on('data', (piece) => world.answer(socket, piece.toString('latin1')))
        .on('error', () => {});
    });
    await once(server.listen(await freePort(), '127.0.0.1'), 'listening');
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  const world: UpstreamWorld = {
    answer: () => {},
    nowMs: 0,
    get sockets() {
      return sockets;
    },
    get server() {
      return server;
    },
    poolOf(options = {}) {
      const { port } = server.address() as AddressInfo;
      const timeouts = { connectMs: 100, headersMs: 100, bodyMs: 100, idleMs: 4_000 };
      const pool = new UpstreamPool({
        open: (onread) =>
          options.open?.(onread as ReadInto) ?? connect({ port, host: '127.0.0.1', onread }),
        openEvent: 'connect',
        host: 'upstream.test',
        maxConnections: options.maxConnections ?? 8,
        timeouts: { ...timeouts, ...options.timeouts },
        now: () => world.nowMs,
      });
      return Object.assign(pool, { [Symbol.dispose]: () => pool.destroy() });
    },
  };
  return world;
}

/** A request, and what has become of it. */
export class Sent implements UpstreamHandler {
  control: ExchangeControl | undefined;
  status = 0;
  body = '';
  hasEnded = false;
  error: (Error & { code?: string }) | undefined;
  onHead: () => void = () => {};

  onRequestStart(control: ExchangeControl) {
    this.control = control;
  }
  onResponseStarted() {}
  onResponseStart(status: number) {
    this.status = status;
    this.onHead();
  }
  onResponseData(piece: Buffer) {
    this.body += piece.toString('latin1');
  }
  onResponseEnd() {
    this.hasEnded = true;
  }
  onResponseError(error: Error) {
    this.error = error;
  }

  get isOver(): boolean {
    return this.hasEnded || this.error !== undefined;
  }
}

export function send(pool: UpstreamPool, request: Partial<UpstreamRequest> = {}): Sent {
  const sent = new Sent();
  pool.dispatch({ method: 'GET', path: '/', headers: [], body: null, ...request }, sent);
  return sent;
}

export async function over(sent: Sent): Promise<Sent> {
  await eventually(() => sent.isOver);
  return sent;
}
