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
