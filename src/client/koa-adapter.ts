import type { IncomingHttpHeaders } from 'node:http';
import { prefersHtml } from '../platform/http/content-negotiation.ts';
import { toAnswer } from './decision.ts';
import type { HubAuth } from './hub-auth.ts';
import { type AdapterOptions, reportFailure } from './node-adapter.ts';

/** What the middleware reads and writes of Koa's context; Koa's own types are not needed to use it. */
interface KoaContext {
  readonly method: string;
  readonly originalUrl: string;
  readonly headers: IncomingHttpHeaders;
  readonly state: Record<string, unknown>;
  status: number;
  body: unknown;
  set(headers: Record<string, string | string[]>): void;
}

/** Makes Koa middleware that lets allowed requests pass, with who it is in `ctx.state.hubAccess`. */
export function koaMiddleware(
  hubAuth: HubAuth,
  options: AdapterOptions = {},
): (ctx: KoaContext, next: () => Promise<unknown>) => Promise<void> {
  const { onError = console.error } = options;
  return async (ctx, next) => {
    // The original URL: a mounted application sees only the rest of it.
    const { method, originalUrl: url, headers } = ctx;
    const decision = await hubAuth.authenticate({ method, url, headers });
    if (decision.kind === 'allowed') {
      ctx.state['hubAccess'] = decision;
      await next();
      return;
    }
    reportFailure(decision, onError);
    const answer = toAnswer(decision, prefersHtml(headers));
    ctx.status = answer.status;
    ctx.set({ ...answer.headers });
    ctx.body = answer.body;
  };
}
