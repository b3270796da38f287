import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { actAs } from '../audit/actor.ts';
import type { AuditEvent } from '../audit/audit-event.ts';
import { undoneAction } from '../audit/undone.ts';
import { frequentInfo } from '../logging/create-log.ts';
import { networkOf } from './connection-limits.ts';
import type { ClientAddress, ClientAddressReader } from './request-address.ts';

/** What is noted of a request when it arrives. */
export interface RequestRecord {
  /** Ties the answer, what the upstream was told and the lines of the log together. */
  readonly id: string;
  /** Whether the client has sent the id. */
  readonly hasClientId: boolean;
  /** By the clock of `performance.now()`. */
  readonly startedAtMs: number;
  /** Its connection; Node takes it off the request now and then. */
  readonly socket: Socket;
  /** What had been sent on its connection before. */
  readonly sentBytesBefore: number;
  /** Undefined without `Hub.tracing`. */
  readonly trace: RequestTrace | undefined;
}

/** The trace that a request belongs to. */
export interface RequestTrace {
  readonly traceId: string;
  /** Notes that it is decided what becomes of the request, and the route that it belongs to. */
  decided(verdict: string, route: string | undefined): void;
  /** Headers for the upstream, names and values in turn. */
  forwarding(): readonly string[];
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
    const hasClientId = typeof sent === 'string' && safeId.test(sent);
    record = {
      id: hasClientId ? sent : randomUUID(),
      hasClientId,
      startedAtMs: performance.now(),
      socket: req.socket,
      sentBytesBefore: req.socket.bytesWritten,
      trace: undefined,
    };
    req[key] = record;
  }
  return record;
}

/** Notes the trace of a request, whose id is the request's own unless the client has sent another one. */
export function noteTrace(req: RecordedRequest, trace: RequestTrace): void {
  const record = recordOf(req);
  Object.assign(record, record.hasClientId ? { trace } : { trace, id: trace.traceId });
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

const readerKey = Symbol('reader');
type NotedSocket = Socket & { [readerKey]?: string };

/** Notes who reads what is sent on a connection from now on: a user by name or, as long as none is known, an address. */
export function noteReader(
  socket: NotedSocket,
  { userName, address = '' }: { readonly userName?: string | undefined; readonly address?: string },
): void {
  // No name of a user begins with a space.
  socket[readerKey] = userName ?? ` ${address}`;
}

/** Who reads what is sent on a connection; two of them are equal if they are one user or in one network. */
export function readerOf(socket: NotedSocket): string {
  const noted = socket[readerKey] ?? ` ${socket.remoteAddress ?? ''}`;
  return noted.startsWith(' ') ? ` ${networkOf(noted.slice(1))}` : noted;
}

const secretWord = /token|code|state|secret|password|key|_csrf|assertion/i;
/** Such a parameter inside the value of another one, as in `next` of a login. */
const secretInside = new RegExp(`(?:${secretWord.source})[^=&?]*=`, 'i');
const maxTargetLength = 2048;
/** Encoding upon encoding, up to here; what is wrapped deeper is not logged. */
const deepestEncoding = 4;

/** A request target fit for a log: secrets removed, however they are encoded, and length bounded. */
export function loggedTarget(target: string): string {
  const [path = '', ...query] = target.slice(0, maxTargetLength).split('?');
  if (query.length === 0) return path;
  return `${path}?${query.join('?').split('&').map(loggedPair).join('&')}`;
}

function loggedPair(pair: string): string {
  const at = pair.indexOf('=');
  if (at === -1) return pair;
  const name = fullyDecoded(pair.slice(0, at));
  const value = fullyDecoded(pair.slice(at + 1));
  if (name === undefined || value === undefined) return '[unreadable]';
  if (secretWord.test(name)) return `${encodeURIComponent(name)}=[secret]`;
  if (!secretInside.test(value)) return pair;
  const shown = value.includes('?') ? encodeURI(value.slice(0, value.indexOf('?') + 1)) : '';
  return `${encodeURIComponent(name)}=${shown}[secret]`;
}

function fullyDecoded(text: string): string | undefined {
  try {
    let decoded = text;
    for (let depth = 0; depth < deepestEncoding; depth += 1) {
      const once = decodeURIComponent(decoded);
      if (once === decoded) return decoded;
      decoded = once;
    }
    return undefined;
  } catch {
    return undefined;
  }
}

const nameKey = 'logName';

/** Notes whose request it is, a user's or a service's, once that is known. */
export function noteCallerName(ctx: Context, name: string): void {
  ctx.state[nameKey] = name;
  noteReader(ctx.req.socket, { userName: name });
}

function nameOf(ctx: Context): string | undefined {
  return ctx.state[nameKey] as string | undefined;
}

/** Paths that probes and the gateways of the hub ask for all the time. */
export const isRoutine = /\/hub\/(?:health|ready|api\/gateway\/\w[\w-]*)$/;

/** Gives each request an id (`X-Request-Id`) and logs its end on one line. */
export function requestLog(options: {
  readonly log: Logger;
  readonly clientAddress: ClientAddressReader;
  readonly observe: (method: string, status: number, seconds: number) => void;
}): Middleware {
  const writeEvent = frequentInfo(options.log);
  return async (ctx, next) => {
    const { id: requestId } = recordOf(ctx.req);
    ctx.state['requestId'] = requestId;
    ctx.set('X-Request-Id', requestId);
    const client = options.clientAddress(ctx.req);
    ctx.state['client'] = client;
    ctx.request.ip = client.address;
    noteReader(ctx.req.socket, { address: client.address });
    ctx.res.once('close', () => {
      const { status, seconds, sentBytes } = outcomeOf(ctx.req, ctx.res);
      options.observe(ctx.method, status, seconds);
      if (writeEvent === undefined) return;
      const fields = {
        requestId,
        method: ctx.method,
        url: loggedTarget(ctx.req.url ?? ''),
        status,
        bytes: sentBytes,
        ms: Math.round(seconds * 1000),
        address: client.address,
        user: nameOf(ctx),
      };
      if (isRoutine.test(ctx.path) && (status < 400 || status === 503))
        options.log.debug(fields, 'request');
      else writeEvent({ ...fields, msg: 'request' });
    });
    await next();
  };
}

/**
 * Makes everything that a request does its caller's in the audit log, and records what is refused or fails:
 * of the API, of the pages and of OAuth alike. Who it is, is found out later on the way.
 */
export function auditMiddleware(audit: {
  readonly recordBounded: (event: AuditEvent) => void;
}): Middleware {
  return async (ctx, next) => {
    const { address } = ctx.state['client'] as ClientAddress;
    await actAs({ kind: 'anonymous', address }, async () => {
      try {
        await next();
      } catch (error) {
        // The pattern of the path: what stands in its place may be a secret.
        const route = ctx['_matchedRoute'] as string | RegExp | undefined;
        const page = route === undefined ? {} : { page: `${ctx.method} ${String(route)}` };
        const auditEvent = undoneAction(error, page);
        if (auditEvent !== undefined) audit.recordBounded(auditEvent);
        throw error;
      }
    });
  };
}
