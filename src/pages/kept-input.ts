import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Context } from 'koa';
import { z } from 'zod';
import type { Sealer } from '../crypto/sealer.ts';
import { cookieValues } from '../http/cookies.ts';
import { safeRedirectTarget } from '../http/redirect-target.ts';
import { setCookie } from '../http/set-cookie.ts';
import { keptInputCookie } from '../protocol/cookie-names.ts';

/** What was typed into a form that the hub could not take, because its login had ended. */
export interface Input {
  /** The path and query of the page with the form. */
  readonly page: string;
  /** The path that the form was sent to. */
  readonly action: string;
  readonly form: URLSearchParams;
}

/**
 * Keeps what was typed until its page is shown again, in the browser itself: nothing that somebody sends without a
 * login is stored here. It is sealed, and fills in what can be seen on the page only, so that a form that another page
 * of this origin sends is no more than a form filled in.
 */
export interface KeptInput {
  /** The address of the page with the form; undefined when nothing could be kept. */
  keep(ctx: Context, form: URLSearchParams): string | undefined;
  /** What is kept for the page that is asked for, once. */
  take(ctx: Context): Input | undefined;
}

const lifetimeSeconds = 600;
/** Browsers take 4,096 bytes with name and attributes (RFC 6265 §6.1). */
const mostCharacters = 3800;
const mostFormCharacters = 64 * 1024;
const contentSchema = z.tuple([z.string(), z.string(), z.string(), z.number()]);

export function createKeptInput(deps: {
  readonly sealer: Sealer;
  readonly publicUrl: URL;
  readonly cookiePath: string;
  readonly now?: () => number;
}): KeptInput {
  const { sealer, publicUrl, cookiePath, now = Date.now } = deps;
  const attributes = { path: cookiePath, secure: publicUrl.protocol === 'https:' };

  return {
    keep(ctx, form) {
      const page = safeRedirectTarget(ctx.get('Referer'), publicUrl);
      if (page === undefined || !page.startsWith(cookiePath)) return undefined;
      const kept = new URLSearchParams(form);
      kept.delete('_csrf');
      const content: z.input<typeof contentSchema> = [
        page,
        ctx.path,
        kept.toString(),
        now() + lifetimeSeconds * 1000,
      ];
      const plain = JSON.stringify(content);
      if (plain.length > mostFormCharacters) return undefined;
      const packed = deflateRawSync(plain).toString('base64url');
      const sealed = sealer.seal(packed, keptInputCookie);
      if (sealed.length > mostCharacters) return undefined;
      setCookie(ctx, keptInputCookie, sealed, { ...attributes, maxAgeSeconds: lifetimeSeconds });
      return page;
    },

    take(ctx) {
      for (const sealed of cookieValues(ctx.req.headers.cookie, keptInputCookie)) {
        const packed = sealer.open(sealed, keptInputCookie);
        if (packed === undefined) continue;
        const plain = inflateRawSync(Buffer.from(packed, 'base64url')).toString();
        const [page, action, form, expiresAt] = contentSchema.parse(JSON.parse(plain));
        if (page !== ctx.originalUrl || expiresAt <= now()) continue;
        setCookie(ctx, keptInputCookie, '', { ...attributes, maxAgeSeconds: 0 });
        return { page, action, form: new URLSearchParams(form) };
      }
      return undefined;
    },
  };
}
