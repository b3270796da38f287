import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { frequentInfo } from '../logging/create-log.ts';
import type { ClientAddressReader } from './client-address.ts';
import { noteReader } from './reader-of.ts';
import { outcomeOf, recordOf } from './request-record.ts';

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

/** What probes and the gateways of the hub ask all the time. */
const isRoutine = /\/hub\/(?:health|ready|api\/gateway\/\w[\w-]*)$/;

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
