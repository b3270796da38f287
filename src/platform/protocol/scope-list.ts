/**
 * Writes scopes as the value of a `scope` parameter or member. Names of users may hold what no scope
 * token may (RFC 6749 §3.3), such as a space; those characters are percent-encoded.
 */
export function formatScopeList(scopes: Iterable<string>): string {
  return [...scopes]
    .map((scope) => scope.replaceAll(/[^\x21\x23-\x5b\x5d-\x7e]+/gu, encodeURIComponent))
    .join(' ');
}
