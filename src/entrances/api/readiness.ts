import type { Context, Middleware } from 'koa';
import { isWithin } from '../../platform/concurrency/time-limit.ts';
import { setBody } from '../../platform/http/body.ts';

/** What is wrong with each part of the hub; undefined where nothing is. */
type Report = Readonly<Record<string, string | undefined>>;

/** Soon enough for a database that was only restarted. */
const retryAfterSeconds = 2;
/** Who asks must be found out in this time, as the database may be what is away. */
const identityTimeoutMs = 300;

/** Answers 200 or 503, with what is wrong for those who may know. */
export function readinessMiddleware(deps: {
  readonly check: () => Promise<Report>;
  /** Rejects when the one who asks may not know more. */
  readonly requireDetailAccess: (ctx: Context) => Promise<void>;
}): Middleware {
  return async (ctx) => {
    const report = await deps.check();
    const isReady = Object.values(report).every((problem) => problem === undefined);
    const mayKnow = await isGranted(deps.requireDetailAccess(ctx));
    ctx.status = isReady ? 200 : 503;
    ctx.set('Cache-Control', 'no-store');
    if (!isReady) ctx.set('Retry-After', String(retryAfterSeconds));
    setBody(ctx, {
      status: isReady ? 'ready' : 'not_ready',
      ...(mayKnow && { checks: presentChecks(report) }),
    });
  };
}

function presentChecks(report: Report) {
  return Object.fromEntries(
    Object.entries(report).map(([part, problem]) => [
      part,
      problem === undefined ? { ready: true } : { ready: false, problem },
    ]),
  );
}

function isGranted(access: Promise<void>): Promise<boolean> {
  return isWithin(access, identityTimeoutMs).catch(() => false);
}
