import type { Context } from 'koa';
import type { Sealer } from '../../platform/crypto/sealer.ts';

/** A secret that a form made, for the page that follows it: it is shown once, and kept sealed until then. */
export interface ShownOnce<Value> {
  keep(ctx: Context, value: Value): void;
  /** Undefined once it was taken, or when there is none. */
  take(ctx: Context): Value | undefined;
}

/** Values go through JSON; at most one of each name waits in a browser session. */
export function createShownOnce<Value>(sealer: Sealer, name: string): ShownOnce<Value> {
  const sessionOf = (ctx: Context) =>
    ctx['session'] as { sessionId?: string; once?: Record<string, string> } | null;
  // What was sealed for one login is of no use in another.
  const contextOf = (session: { sessionId?: string }) => `${name} ${session.sessionId ?? ''}`;

  return {
    keep(ctx, value) {
      const session = sessionOf(ctx);
      if (session === null) return;
      const sealed = sealer.seal(JSON.stringify(value), contextOf(session));
      session.once = { ...session.once, [name]: sealed };
    },

    take(ctx) {
      const session = sessionOf(ctx);
      const sealed = session?.once?.[name];
      if (session === null || sealed === undefined) return undefined;
      const { [name]: _taken, ...rest } = session.once ?? {};
      session.once = rest;
      const text = sealer.open(sealed, contextOf(session));
      return text === undefined ? undefined : (JSON.parse(text) as Value);
    },
  };
}
