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
