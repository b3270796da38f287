import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Context } from 'koa';
import { z } from 'zod';
import type { CsrfProtection } from '../../identity/sessions/csrf.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { cookieValues, setCookie } from '../../platform/http/cookies.ts';
import { safeRedirectTarget } from '../../platform/http/redirect-target.ts';
import { savedInputCookie } from '../../platform/protocol/cookie-names.ts';
import type { KeyvSpace } from '../../platform/store/keyv-space.ts';
import { secretFields } from './fill-in.ts';
import { pendingFormField } from './login/pending-forms.ts';

/** What was typed into a form that the hub could not take, because its login had ended. */
export interface Input {
  /** The path and query of the page with the form. */
  readonly page: string;
  /** The path that the form was sent to. */
  readonly action: string;
  readonly form: URLSearchParams;
}

/**
 * Keeps what was typed until its page is shown again, in the browser itself. What is too long for a cookie is stored
 * here, when its form was made for a login: one form for each, so that who has never had a login stores nothing, and a
 * browser no more than `maxFormCharacters`. No password or code is kept. It is sealed, fills in what can be seen on
 * the page only, and only for the user on whose page of the hub it was typed: neither another page of this origin nor
 * a planted cookie puts words into the mouth of a user.
 */
export interface SavedInput {
  /** The address of the page with the form; undefined when nothing could be kept, or its form is from no page of a user. */
  keep(ctx: Context, form: URLSearchParams): Promise<string | undefined>;
  /** What this user typed into the page that is asked for, once. */
  take(ctx: Context, userId: string): Promise<Input | undefined>;
}

const lifetimeSeconds = 600;
/** Browsers take 4,096 bytes with name and attributes (RFC 6265 §6.1). */
const maxTotalCharacters = 3800;
const maxFormCharacters = 64 * 1024;
/** Begins what leads to a stored form; base64url has none. */
const storedMark = '@';
const contentSchema = z.tuple([z.string(), z.string(), z.string(), z.string(), z.number()]);

export function createSavedInput(deps: {
  readonly sealer: Sealer;
  readonly csrf: Pick<CsrfProtection, 'loginOfForm' | 'readerProofIn' | 'isReader'>;
  readonly store: KeyvSpace<string>;
  readonly publicUrl: URL;
  readonly cookiePath: string;
  readonly now?: () => number;
}): SavedInput {
  const { sealer, csrf, publicUrl, cookiePath, now = Date.now } = deps;
  const attributes = { path: cookiePath, secure: publicUrl.protocol === 'https:' };

  /** Stores what is too long for a cookie; the cookie that leads to it. One for each login, whose next replaces it. */
  async function storeLong(
    ctx: Context,
    { form, page, sealed }: { form: URLSearchParams; page: string; sealed: string },
  ): Promise<string | undefined> {
    const sessionId = csrf.loginOfForm(ctx, form.get('_csrf') ?? '');
    if (sessionId === undefined) return undefined;
    const key = hashSecret(sessionId);
    await deps.store.set(key, sealed, lifetimeSeconds * 1000);
    const cookie = sealer.seal(`${storedMark}${key} ${page}`, savedInputCookie);
    return cookie.length <= maxTotalCharacters ? cookie : undefined;
  }

  async function takeLong(ctx: Context, opened: string): Promise<string | undefined> {
    const [key = '', page] = opened.slice(storedMark.length).split(' ', 2);
    if (page !== ctx.originalUrl) return undefined;
    const sealed = await deps.store.get(key);
    await deps.store.delete(key);
    return sealed === undefined ? undefined : sealer.open(sealed, savedInputCookie);
  }

  return {
    async keep(ctx, form) {
      const page = safeRedirectTarget(ctx.get('Referer'), publicUrl);
      if (page === undefined || !page.startsWith(cookiePath)) return undefined;
      const readerProof = csrf.readerProofIn(form.get('_csrf') ?? '');
      if (readerProof === undefined) return undefined;
      const kept = new URLSearchParams(form);
      // It holds another form, for the login that has ended, and comes with what shows who the user is.
      if (kept.has(pendingFormField)) return undefined;
      for (const name of secretFields) kept.delete(name);
      const content: z.input<typeof contentSchema> = [
        page,
        ctx.path,
        kept.toString(),
        readerProof,
        now() + lifetimeSeconds * 1000,
      ];
      const plain = JSON.stringify(content);
      if (plain.length > maxFormCharacters) return undefined;
      const packed = deflateRawSync(plain).toString('base64url');
      const sealed = sealer.seal(packed, savedInputCookie);
      const value =
        sealed.length <= maxTotalCharacters ? sealed : await storeLong(ctx, { form, page, sealed });
      if (value === undefined) return undefined;
      setCookie(ctx, savedInputCookie, value, { ...attributes, maxAgeSeconds: lifetimeSeconds });
      return page;
    },

    async take(ctx, userId) {
      for (const value of cookieValues(ctx.req.headers.cookie, savedInputCookie)) {
        const opened = sealer.open(value, savedInputCookie);
        const packed = opened?.startsWith(storedMark) ? await takeLong(ctx, opened) : opened;
        if (packed === undefined) continue;
        const plain = inflateRawSync(Buffer.from(packed, 'base64url')).toString();
        const content = contentSchema.safeParse(JSON.parse(plain));
        if (!content.success) continue;
        const [page, action, form, readerProof, expiresAt] = content.data;
        if (page !== ctx.originalUrl || expiresAt <= now()) continue;
        if (!csrf.isReader(userId, readerProof)) continue;
        setCookie(ctx, savedInputCookie, '', { ...attributes, maxAgeSeconds: 0 });
        return { page, action, form: new URLSearchParams(form) };
      }
      return undefined;
    },
  };
}
