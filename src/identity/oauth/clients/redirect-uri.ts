import type { Client } from './client.ts';

/**
 * The absolute form of a redirect URI: a path means that path on the client's own origin. Nothing is
 * normalised, since redirect URIs are compared as strings (RFC 9700 §2.1).
 */
export function absoluteRedirectUri(redirectUri: string, origin: string): string {
  return redirectUri.startsWith('/') ? origin + redirectUri : redirectUri;
}

/** Whether two redirect URIs are the same, character by character once both are absolute. */
export function isSameRedirectUri(left: string, right: string, origin: string): boolean {
  return absoluteRedirectUri(left, origin) === absoluteRedirectUri(right, origin);
}

const loopback = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::\d{1,5})?(?=[/?]|$)/;

/** Whether a redirect URI leads to an app on the device of the browser itself. */
export function isLoopbackUri(uri: string): boolean {
  return loopback.test(uri);
}

/**
 * Whether a client registered a redirect URI. An app on a device gets its port from the operating system at the
 * moment, so any will do for a public client at its own device (RFC 8252 §7.3).
 */
export function isRegisteredRedirectUri(
  uri: string,
  { redirectUris, isPublic, origin }: Pick<Client, 'redirectUris' | 'isPublic' | 'origin'>,
): boolean {
  const withoutPort = (text: string) => (isPublic ? text.replace(loopback, '$1') : text);
  return redirectUris.some((each) =>
    isSameRedirectUri(withoutPort(uri), withoutPort(each), origin),
  );
}
