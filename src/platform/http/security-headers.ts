import type { Context, Middleware } from 'koa';

const openerPolicyHeader = 'cross-origin-opener-policy';

const contentSecurityPolicy = (imageSources: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${["'self'", 'data:', ...imageSources].join(' ')}`,
    "font-src 'self'",
    "connect-src 'self'",
    // Also of every redirect that follows; see formRedirects.
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** What the security headers depend on. */
export interface SecurityHeaderOptions {
  /** For how many seconds browsers come by https alone (RFC 6797 §6.1.1); undefined where they come by http. */
  readonly hstsSeconds: number | undefined;
  /** Whether the answer may belong to a popup in which an authorization is under way. */
  readonly keepsOpener?: boolean;
  /** Origins of pictures on pages, beside the hub's own. */
  readonly imageSources?: readonly string[];
}

/** Sets the headers that every answer of the hub itself carries. */
export function securityHeaders({
  otherHeaders = {},
  ...options
}: SecurityHeaderOptions & {
  readonly otherHeaders?: Readonly<Record<string, string>>;
}): Middleware {
  const values = Object.entries({ ...securityHeaderValues(options), ...otherHeaders });
  return async (ctx, next) => {
    for (const [name, value] of values) ctx.res.setHeader(name, value);
    await next();
  };
}

/** The security headers by lower-case name. */
export function securityHeaderValues({
  hstsSeconds,
  keepsOpener = false,
  imageSources = [],
}: SecurityHeaderOptions): Record<string, string> {
  return {
    'content-security-policy': contentSecurityPolicy(imageSources),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    ...(!keepsOpener && { [openerPolicyHeader]: 'same-origin' }),
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    ...(hstsSeconds !== undefined && {
      'strict-transport-security': `max-age=${hstsSeconds}`,
      // Ends what an app made browsers report of the origin, before such headers of apps were dropped.
      nel: JSON.stringify({ max_age: 0 }),
    }),
  };
}

/** Lets pages of any origin read what is at these paths (CORS), where no cookie counts. */
export function openToOrigins(paths: readonly string[], apiPath: string): Middleware {
  const open = new Set(paths);
  return async (ctx, next) => {
    if (open.has(ctx.path)) ctx.set('Access-Control-Allow-Origin', '*');
    // Programs in browsers may ask which headers they can send; the answer allows no other origin elsewhere.
    if (ctx.method === 'OPTIONS' && ctx.path.startsWith(apiPath)) {
      ctx.set('Access-Control-Allow-Headers', 'accept, content-type, authorization');
    }
    await next();
  };
}

/**
 * Leaves this answer, also that of a failure, without a Cross-Origin-Opener-Policy: one answer with it among those on the
 * way of a popup is enough to cut it off from the page that opened it.
 */
export function keepOpener(ctx: Context): void {
  ctx.state['keepsOpener'] = true;
  ctx.remove(openerPolicyHeader);
}

/** Whether that was asked for. */
export function keepsOpener(ctx: Context): boolean {
  return ctx.state['keepsOpener'] === true;
}
