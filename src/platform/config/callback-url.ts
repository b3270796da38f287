/**
 * Where an external provider sends the browser back (RFC 6749 §3.1.2): one address for all providers, or one of an
 * authenticator's own. Built from the public URL, never from a Host header.
 */
export function callbackUrlOf(publicUrl: URL, authenticator?: string): string {
  const path = authenticator === undefined ? '' : `/${encodeURIComponent(authenticator)}`;
  return new URL(`hub/oauth_callback${path}`, publicUrl).href;
}
