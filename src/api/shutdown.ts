import type Router from '@koa/router';
import { z } from 'zod';
import type { Authority } from '../rbac/authority.ts';
import { parseBody } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';

/** What a stop that was asked for over the API does beside stopping the hub. */
export interface StopRequest {
  /** Whether users' servers stop too; `Hub.cleanup_servers` decides when undefined. */
  readonly servers: boolean | undefined;
}

const body = z.strictObject({
  servers: z.boolean().optional(),
  /** Accepted from clients of hubs with a proxy of their own; here the proxy is the hub. */
  proxy: z.boolean().optional(),
});

/** `POST /shutdown`: stops the hub as SIGTERM does. */
export function shutdownRoutes(
  router: Router,
  parts: {
    readonly authority: Authority;
    readonly requestStop: (request: StopRequest) => void;
    readonly bodyLimitBytes: number;
  },
): void {
  router.post('/shutdown', async (ctx) => {
    requireScopes(ctx, ['shutdown'], await parts.authority.membership());
    const { servers } = await parseBody(ctx, body, parts.bodyLimitBytes);
    ctx.status = 202;
    ctx.body = { message: 'Shutting down Hub' };
    ctx.res.once('close', () => parts.requestStop({ servers }));
  });
}
