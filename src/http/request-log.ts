import { randomUUID } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { ClientAddressReader } from './client-address.ts';

/** Query parameters whose values never reach a log. */
const secretParameters =
  /([?&](?:[^=&]*(?:token|code|state|secret|password|key|_csrf|assertion)[^=&]*)=)[^&]*/gi;

/** A request target fit for a log: secrets removed, length bounded. */
export function loggedTarget(target: string): string {
  return target.slice(0, 2048).replace(secretParameters, '$1[secret]');
}

/** Gives each request an id (`X-Request-Id`) and logs its end on one line. */
export function requestLog(options: {
  readonly log: Logger;
  readonly clientAddress: ClientAddressReader;
  readonly observe: (method: string, status: number, seconds: number) => void;
}): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    const requestId = randomUUID();
    ctx.state['requestId'] = requestId;
    ctx.set('X-Request-Id', requestId);
    const client = options.clientAddress(ctx.req);
    ctx.state['client'] = client;
    ctx.request.ip = client.address;
    ctx.res.once('close', () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const { statusCode: status } = ctx.res;
      options.observe(ctx.method, status, seconds);
      const fields = {
        requestId,
        method: ctx.method,
        url: loggedTarget(ctx.req.url ?? ''),
        status,
        ms: Math.round(seconds * 1000),
        address: client.address,
        user: ctx.state['logName'] as string | undefined,
      };
      if (ctx.path.endsWith('/hub/health')) options.log.debug(fields, 'request');
      else options.log.info(fields, 'request');
    });
    await next();
  };
}
