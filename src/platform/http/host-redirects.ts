import type { Middleware } from 'koa';
import type { Origins } from './origins.ts';

/** Leads redirects that name a path to the origin that serves it, where there are several. */
export function hostRedirects(origins: Pick<Origins, 'hub' | 'urlOf'>): Middleware {
  return async (ctx, next) => {
    await next();
    const location = ctx.res.getHeader('location');
    if (ctx.status < 300 || ctx.status > 399) return;
    if (typeof location !== 'string' || !location.startsWith('/')) return;
    const url = origins.urlOf(location);
    ctx.set('Location', url === location ? origins.hub + location : url);
  };
}
