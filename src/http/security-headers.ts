import type { Context, Middleware } from 'koa';

const contentSecurityPolicy = (
  formTargets: readonly string[],
  imageSources: readonly string[] = [],
): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${["'self'", 'data:', ...imageSources].join(' ')}`,
    "font-src 'self'",
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** What the security headers depend on. */
export interface SecurityHeaderOptions {
  readonly isHttps: boolean;
  /** Where the redirects that follow a form may lead, beside the hub's own origin; the array may change. */
  readonly formTargets?: readonly string[];
  /** Origins of pictures on pages, beside the hub's own. */
  readonly imageSources?: readonly string[];
}

/** Sets the headers that every answer of the hub itself carries. */
export function securityHeaders(options: SecurityHeaderOptions): Middleware {
  let targets: string | undefined;
  let values: [string, string][] = [];
  return async (ctx, next) => {
    const current = options.formTargets?.join(' ') ?? '';
    if (current !== targets) {
      targets = current;
      values = Object.entries(securityHeaderValues(options));
    }
    for (const [name, value] of values) ctx.res.setHeader(name, value);
    await next();
  };
}

/** The security headers by lower-case name. */
export function securityHeaderValues({
  isHttps,
  formTargets = [],
  imageSources = [],
}: SecurityHeaderOptions): Record<string, string> {
  return {
    'content-security-policy': contentSecurityPolicy(formTargets, imageSources),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    ...(isHttps && {
      'strict-transport-security': 'max-age=31536000',
      // Ends what an app made browsers report of the origin, before such headers of apps were dropped.
      nel: JSON.stringify({ max_age: 0 }),
    }),
  };
}

/**
 * Allows the forms of this answer to end at further origins. Chromium applies `form-action` to the
 * redirect that follows a form too, so a consent form must name where the client's redirect URI is.
 */
export function allowFormTargets(ctx: Context, origins: readonly string[]): void {
  ctx.set('Content-Security-Policy', contentSecurityPolicy(origins));
}
