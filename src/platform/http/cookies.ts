import type { Context, Middleware } from 'koa';
import type { Sealer } from '../crypto/sealer.ts';
import { hostPrefix } from '../protocol/cookie-names.ts';
import { trimBlanks } from './trim-blanks.ts';

/** How a cookie is set; `secure` follows the public URL. */
export interface CookieAttributes {
  readonly path: string;
  readonly secure: boolean;
  readonly httpOnly?: boolean;
  readonly sameSite?: 'Lax' | 'Strict' | 'None';
  /** Left out: the cookie lives as long as the browser session. Zero or less: it is removed. */
  readonly maxAgeSeconds?: number;
}

const valuePattern = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/** Every value of one cookie in a Cookie header, in order: a name may stand there more than once. */
export function cookieValues(header: string | undefined, name: string): string[] {
  if (header === undefined || !header.includes(name)) return [];
  const values: string[] = [];
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    const value = pair.slice(equals + 1).trim();
    values.push(value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value);
  }
  return values;
}

/** Names of the cookies in a Cookie header that begin in a certain way, each once, in order. */
export function cookieNames(header: string | undefined, prefix: string): string[] {
  if (header === undefined || !header.includes(prefix)) return [];
  const names = header.split(';').map((pair) => pair.split('=', 1)[0]?.trim() ?? '');
  return [...new Set(names.filter((name) => name.startsWith(prefix)))];
}

/** Writes a Set-Cookie header value (RFC 6265 §4.1). Throws TypeError for a value it cannot carry. */
export function serializeCookie(name: string, value: string, attributes: CookieAttributes): string {
  if (!valuePattern.test(value)) throw new TypeError(`the value of cookie ${name} needs encoding`);
  const { path, secure, httpOnly = true, sameSite = 'Lax', maxAgeSeconds } = attributes;
  let cookie = `${name}=${value}; Path=${path}`;
  if (maxAgeSeconds !== undefined) {
    const seconds = Math.max(0, Math.floor(maxAgeSeconds));
    const expires = new Date(seconds === 0 ? 0 : Date.now() + seconds * 1000);
    cookie += `; Max-Age=${seconds}; Expires=${expires.toUTCString()}`;
  }
  if (httpOnly) cookie += '; HttpOnly';
  if (secure) cookie += '; Secure';
  return `${cookie}; SameSite=${sameSite}`;
}

/** Sets a cookie on the answer, in place of an earlier one of the same name and path. */
export function setCookie(
  ctx: Context,
  name: string,
  value: string,
  attributes: CookieAttributes,
): void {
  const earlier = [ctx.res.getHeader('set-cookie') ?? []].flat().map(String);
  const isReplaced = (cookie: string) =>
    cookie.startsWith(`${name}=`) &&
    cookie.toLowerCase().includes(`path=${attributes.path};`.toLowerCase());
  const cookies = earlier.filter((cookie) => !isReplaced(cookie));
  ctx.set('Set-Cookie', [...cookies, serializeCookie(name, value, attributes)]);
}

/** Adds values of Set-Cookie headers to the answer. */
export function addCookies(ctx: Context, setCookies: readonly string[]): void {
  const earlier = [ctx.res.getHeader('set-cookie') ?? []].flat().map(String);
  if (setCookies.length > 0) ctx.set('Set-Cookie', [...earlier, ...setCookies]);
}

/** More copies of one cookie than this are an attempt to keep the server busy. */
const maxCopies = 8;

/**
 * What was sealed into the cookies of one name, each text once; what does not open is left out. A name may
 * stand in a Cookie header more than once, since another site of the host can plant a cookie of that name
 * with a longer path. The name is the sealing context, so that a value moved to another cookie is refused.
 */
export function openCookies(
  sealer: Pick<Sealer, 'open'>,
  cookieHeader: string | undefined,
  name: string,
): string[] {
  const opened = cookieValues(cookieHeader, name)
    .slice(0, maxCopies)
    .flatMap((sealed) => sealer.open(sealed, name) ?? []);
  return [...new Set(opened)];
}

/**
 * The one text sealed into the cookies of a name. Two different genuine ones count as none, as do too many
 * to open: choosing one would let a page that planted a cookie choose who the visitor is.
 */
export function openOnlyCookie(
  sealer: Pick<Sealer, 'open'>,
  cookieHeader: string | undefined,
  name: string,
): string | undefined {
  if (cookieValues(cookieHeader, name).length > maxCopies) return undefined;
  const [only, ...others] = openCookies(sealer, cookieHeader, name);
  return others.length === 0 ? only : undefined;
}

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
