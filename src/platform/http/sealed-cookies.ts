import type { Sealer } from '../crypto/sealer.ts';
import { cookieValues } from './cookies.ts';

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
