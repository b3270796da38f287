/**
 * The absolute form of a redirect URI: a path means that path on the hub's public origin. Nothing is
 * normalised, since redirect URIs are compared as strings (RFC 9700 §2.1).
 */
export function absoluteRedirectUri(redirectUri: string, publicUrl: URL): string {
  return redirectUri.startsWith('/') ? publicUrl.origin + redirectUri : redirectUri;
}

/** Whether two redirect URIs are the same, character by character once both are absolute. */
export function isSameRedirectUri(left: string, right: string, publicUrl: URL): boolean {
  return absoluteRedirectUri(left, publicUrl) === absoluteRedirectUri(right, publicUrl);
}
