import type { Context } from 'koa';
import { type CookieAttributes, serializeCookie } from './cookies.ts';

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
