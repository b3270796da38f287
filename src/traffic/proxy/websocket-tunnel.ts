import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { HubError } from '../../platform/errors.ts';
import { answerErrorOnSocket, noteUpgradeStatus } from '../../platform/http/answer.ts';
import { isHandshakeAnswer } from '../../platform/http/websocket-handshake.ts';
import { text } from '../../platform/texts/text.ts';
import { detachableSocket, takeResponse } from '../../platform/undocumented/http-proxy-sockets.ts';
import { joinSockets, type SocketPairOwner, separateSockets } from './joined-sockets.ts';
import type { CloseReason, ConnectionTags, LiveConnection } from './live-connections.ts';
import { relayBody } from './request-body.ts';
import { toHeaderObject } from './request-headers.ts';
import { clientResponseHeaders } from './response-headers.ts';
import { takesTooLong, toCloseError, toUpstreamError } from './upstream-error.ts';
import { closeFrame, FrameBoundary } from './websocket-frames.ts';

/** What a tunnel asks of the forwarder. */
export interface TunnelHost {
  readonly handshakeTimeoutMs: number;
  /** How long one side may take to close after the other has. */
  readonly closeGraceMs: number;
  /** The upstream has taken the handshake; `opened` is to be called once http-proxy-3 has answered the client. */
  upgraded(tunnel: WebSocketTunnel, upstream: Socket): void;
  /** Called once, when the client's connection is closed. */
  closed(tunnel: WebSocketTunnel): void;
  failed(tunnel: WebSocketTunnel, error: unknown): void;
  /** Milliseconds on a monotonic clock. */
  now(): number;
}

/** Finds peers that vanished without a word. */
const keepAliveDelayMs = 30_000;

const closeCodes: Record<CloseReason, readonly [code: number, text: string]> = {
  session_ended: [1008, 'session ended'],
  access_revoked: [1008, 'access revoked'],
  route_removed: [1001, 'stopped'],
  shutting_down: [1001, 'hub is stopping'],
};

/** One forwarded WebSocket, from the handshake until both sides are closed. */
export class WebSocketTunnel implements LiveConnection, SocketPairOwner {
  readonly kind = 'websocket';
  readonly tags: ConnectionTags;
  readonly #socket: Socket;
  readonly requestId: string;
  readonly #clientKey: string;
  readonly #host: TunnelHost;
  readonly #boundary = new FrameBoundary();
  readonly #clientFrames = new FrameBoundary();
  #state: 'connecting' | 'open' | 'closing' = 'connecting';
  #proxyRequest: ClientRequest | undefined;
  #detachClient: (() => void) | undefined;
  #detachUpstream: (() => void) | undefined;
  #upstream: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #bytes = 0;
  #lastTrafficMs: number;

  constructor(options: {
    readonly socket: Socket;
    readonly clientKey: string;
    readonly requestId: string;
    readonly tags: ConnectionTags;
    readonly host: TunnelHost;
  }) {
    this.#socket = options.socket;
    this.#clientKey = options.clientKey;
    this.requestId = options.requestId;
    this.tags = options.tags;
    this.#host = options.host;
    this.#lastTrafficMs = options.host.now();
    this.#timer = setTimeout(() => this.#expireHandshake(), options.host.handshakeTimeoutMs);
    this.#timer.unref();
    this.#socket.once('close', () => this.#clientClosed());
    this.#socket.once('end', () => this.#closeSoon());
    this.#detachClient = detachableSocket(this.#socket);
  }

  /** Takes over the request to the upstream before http-proxy-3 has put its own listeners on it. */
  connecting(proxyRequest: ClientRequest): void {
    this.#proxyRequest = proxyRequest;
    proxyRequest.once('upgrade', (answer, upstream) => this.#upgraded(answer, upstream));
    takeResponse(proxyRequest, (answer) => this.#refused(answer));
  }

  /** Called for every failure of the upstream request and, later, of the upstream socket. */
  upstreamFailed(error: unknown): void {
    if (this.#state !== 'connecting' || this.#socket.destroyed) return;
    if (!(error instanceof HubError)) this.#host.failed(this, error);
    this.#refuse(toUpstreamError(error));
  }

  /** Notes bytes that went either way since the last call; returns for how long there were none. */
  recordTraffic(): number {
    const bytes = this.#socket.bytesRead + this.#socket.bytesWritten;
    const nowMs = this.#host.now();
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#lastTrafficMs = nowMs;
      this.tags.route.lastActivityMs = nowMs;
    }
    if (this.#clientFrames.hasData) {
      this.#clientFrames.hasData = false;
      this.tags.route.lastUseMs = nowMs;
    }
    return nowMs - this.#lastTrafficMs;
  }

  close(reason: CloseReason): void {
    const [code, text] = closeCodes[reason];
    if (this.#state === 'connecting') {
      this.#refuse(toCloseError(reason));
      this.#proxyRequest?.destroy();
    } else if (this.#state === 'open') {
      this.#closeWith(code, text);
    }
  }

  endStream(reason: CloseReason): void {
    this.close(reason);
  }

  /** Ends a WebSocket that has been idle for too long. */
  closeIdle(): void {
    if (this.#state === 'open') this.#closeWith(1001, 'idle');
  }

  /** Ends with a close frame, or without one when a frame is under way. */
  #closeWith(code: number, text: string): void {
    this.#state = 'closing';
    separateSockets(this.#socket);
    if (this.#boundary.isBetweenFrames) this.#socket.end(closeFrame(code, text));
    else this.#socket.end();
    this.#upstream?.destroy();
    this.#closeSoon();
  }

  upstreamSent(chunk: Buffer): void {
    this.#boundary.push(chunk);
  }

  clientSent(chunk: Buffer): void {
    this.#clientFrames.push(chunk);
  }

  sideEnded(): void {
    this.#closeSoon();
  }

  /** http-proxy-3 answers the client next, and joins the sockets. */
  #upgraded(answer: IncomingMessage, upstream: Socket): void {
    this.#clearTimer();
    this.#proxyRequest = undefined;
    if (this.#state !== 'connecting' || !isHandshakeAnswer(answer, this.#clientKey)) {
      if (this.#state === 'connecting') {
        this.#refuse(noWebSocket());
      }
      upstream.destroy();
      return;
    }
    this.#state = 'open';
    noteUpgradeStatus(this.#socket, 101);
    this.#upstream = upstream;
    answer.headers = {
      ...toHeaderObject(
        clientResponseHeaders(answer.headers, this.tags.route, [this.tags.client?.host]),
      ),
      connection: 'Upgrade',
      upgrade: 'websocket',
    };
    this.#detachUpstream = detachableSocket(upstream);
    this.#host.upgraded(this, upstream);
  }

  /** Before any data has moved, the pipes and listeners of http-proxy-3 make room for ours, which take less memory. */
  opened(): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    this.#detachUpstream?.();
    this.#detachClient?.();
    this.#detachUpstream = undefined;
    this.#detachClient = undefined;
    joinSockets(this.#socket, upstream, this);
    this.#socket.setKeepAlive(true, keepAliveDelayMs);
    upstream.setKeepAlive(true, keepAliveDelayMs);
  }

  /** The upstream answered with a plain response, whose body ends with the connection or is of known length. */
  #refused(answer: IncomingMessage): void {
    // 101 without the headers of an upgrade, which a proxy in front would take for one.
    if ((answer.statusCode ?? 0) < 200) {
      this.#refuse(noWebSocket());
      this.#proxyRequest?.destroy();
      return;
    }
    this.#clearTimer();
    noteUpgradeStatus(this.#socket, answer.statusCode ?? 502);
    this.#state = 'closing';
    const { headers, statusCode, statusMessage } = answer;
    const pairs = clientResponseHeaders(headers, this.tags.route, [this.tags.client?.host]);
    let head = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n`;
    for (let index = 0; index + 1 < pairs.length; index += 2) {
      head += `${pairs[index]}: ${pairs[index + 1]}\r\n`;
    }
    const socket = this.#socket;
    socket.write(`${head}Connection: close\r\n\r\n`, 'latin1');
    relayBody(answer, socket);
    answer.once('end', () => socket.destroySoon());
    socket.once('close', () => answer.destroy());
    socket.resume();
  }

  #refuse(error: HubError): void {
    this.#clearTimer();
    this.#state = 'closing';
    answerErrorOnSocket(this.#socket, error, this.requestId);
  }

  #expireHandshake(): void {
    if (this.#state !== 'connecting') return;
    this.#refuse(takesTooLong());
    this.#proxyRequest?.destroy();
  }

  #clientClosed(): void {
    this.#proxyRequest?.destroy();
    this.#proxyRequest = undefined;
    this.#state = 'closing';
    this.#host.closed(this);
    this.#closeSoon();
  }

  /** One side is closing: the other gets a moment to do the same. */
  #closeSoon(): void {
    if (this.#state === 'connecting') {
      this.#socket.destroy();
      return;
    }
    const isClosed = this.#socket.destroyed && this.#upstream?.destroyed !== false;
    if (isClosed) {
      this.#clearTimer();
    } else {
      this.#timer ??= setTimeout(() => this.#destroy(), this.#host.closeGraceMs).unref();
    }
  }

  #destroy(): void {
    this.#socket.destroy();
    this.#upstream?.destroy();
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

function noWebSocket(): HubError {
  return new HubError('upstream_failed', text`The application does not speak WebSocket.`);
}
