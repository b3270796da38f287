import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import { z } from 'zod';
import type { Sealer } from '../../../platform/crypto/sealer.ts';
import { openOnlyCookie, setCookie } from '../../../platform/http/cookies.ts';
import { knownBrowserCookie } from '../../../platform/protocol/cookie-names.ts';

/** Remembers in a browser who has logged in with it (OWASP: device cookies). It is not a login. */
export interface KnownBrowser {
  /** Notes a login that is complete. */
  save(ctx: Context, userName: string): void;
  /** Id of the browser, when this user has logged in with it. */
  idFor(ctx: Context, userName: string): string | undefined;
}

const cookieSeconds = 180 * 86_400;
/** The latest users of one browser that are remembered: a cookie holds 4 KB. */
const maxUsers = 4;

const contentSchema = z.object({ id: z.string(), users: z.array(z.string()) });

export function createKnownBrowser(deps: {
  readonly sealer: Sealer;
  readonly path: string;
  readonly isSecure: boolean;
}): KnownBrowser {
  function read(ctx: Context): z.output<typeof contentSchema> | undefined {
    const text = openOnlyCookie(deps.sealer, ctx.req.headers.cookie, knownBrowserCookie);
    return text === undefined ? undefined : contentSchema.parse(JSON.parse(text));
  }

  return {
    save(ctx, userName) {
      const known = read(ctx);
      const others = (known?.users ?? []).filter((name) => name !== userName);
      const content = {
        // Each login gets a new id: one that was copied has no more guesses than its own.
        id: randomUUID(),
        users: [userName, ...others].slice(0, maxUsers),
      };
      setCookie(
        ctx,
        knownBrowserCookie,
        deps.sealer.seal(JSON.stringify(content), knownBrowserCookie),
        {
          path: deps.path,
          secure: deps.isSecure,
          sameSite: 'Lax',
          maxAgeSeconds: cookieSeconds,
        },
      );
    },

    idFor(ctx, userName) {
      const known = read(ctx);
      return known?.users.includes(userName) === true ? known.id : undefined;
    },
  };
}
