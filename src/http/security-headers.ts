import type { Context, Middleware } from 'koa';

const contentSecurityPolicy = (formTargets: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** The policy of a page without special needs. */
export const pageContentSecurityPolicy = contentSecurityPolicy([]);

/** Sets the headers that every answer of the hub itself carries. */
export function securityHeaders(options: { readonly isHttps: boolean }): Middleware {
  return async (ctx, next) => {
    setSecurityHeaders(ctx, options.isHttps);
    await next();
  };
}

/** Sets the security headers again, for an error answer that began from nothing. */
export function setSecurityHeaders(ctx: Context, isHttps: boolean): void {
  ctx.set('Content-Security-Policy', pageContentSecurityPolicy);
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set('Referrer-Policy', 'same-origin');
  ctx.set('Cross-Origin-Opener-Policy', 'same-origin');
  ctx.set('X-Frame-Options', 'DENY');
  ctx.set('Cache-Control', 'no-store');
  if (isHttps) ctx.set('Strict-Transport-Security', 'max-age=31536000');
}

/**
 * Allows the forms of this answer to end at further origins. Chromium applies `form-action` to the
 * redirect that follows a form too, so a consent form must name where the client's redirect URI is.
 */
export function allowFormTargets(ctx: Context, origins: readonly string[]): void {
  ctx.set('Content-Security-Policy', contentSecurityPolicy(origins));
}
