import type { Middleware } from 'koa';
import { hostPrefix } from '../protocol/cookie-names.ts';
import { trimBlanks } from './trim-blanks.ts';

/** Every cookie that the hub itself sets and believes. */
const ownCookie = /^hub-/;

/**
 * Sets the hub's own cookies under names that begin with `__Host-`, and believes none without it: a page
 * of a neighbour below the same domain could have planted that (cookie tossing). What runs below knows
 * them by their plain names.
 */
export function hostCookies(): Middleware {
  return async (ctx, next) => {
    const { headers } = ctx.req;
    const cookie = headers.cookie === undefined ? undefined : withPlainNames(headers.cookie);
    if (cookie === undefined || cookie === '') delete headers.cookie;
    else headers.cookie = cookie;
    try {
      await next();
    } finally {
      const set = [ctx.res.getHeader('set-cookie') ?? []].flat().map(String);
      if (set.length > 0 && !ctx.res.headersSent) ctx.set('Set-Cookie', set.map(withPrefix));
    }
  };
}

function withPlainNames(header: string): string {
  return header
    .split(';')
    .map(trimBlanks)
    .filter((pair) => pair !== '' && !ownCookie.test(pair))
    .map((pair) => (pair.startsWith(`${hostPrefix}hub-`) ? pair.slice(hostPrefix.length) : pair))
    .join('; ');
}

function withPrefix(setCookie: string): string {
  if (!ownCookie.test(setCookie)) return setCookie;
  return hostPrefix + setCookie.replace(/; *path=[^;]*/i, '; Path=/');
}
