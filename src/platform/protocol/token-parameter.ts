/**
 * The URL parameter `token`, which carries a hub token where no header can be set. All readings of a
 * URL stand here, so that what was taken for a token is also what is removed.
 */

/** The first token in the query of a path or URL; undefined when there is none or it is empty. */
export function tokenParameter(url: string): string | undefined {
  for (const pair of pairsOf(url)) {
    if (!isTokenPair(pair)) continue;
    return new URLSearchParams(pair).get('token') || undefined;
  }
  return undefined;
}

/** Whether the query of a path or URL has a `token` parameter, also an empty one. */
export function hasTokenParameter(url: string): boolean {
  return pairsOf(url).some(isTokenPair);
}

/** Removes every `token` parameter from the query of a path or URL; the rest stays as it was. */
export function withoutTokenParameter(url: string): string {
  const pairs = pairsOf(url);
  const kept = pairs.filter((pair) => !isTokenPair(pair));
  if (kept.length === pairs.length) return url;
  const path = url.slice(0, url.indexOf('?'));
  return kept.length === 0 ? path : `${path}?${kept.join('&')}`;
}

function pairsOf(url: string): string[] {
  const queryAt = url.indexOf('?');
  return queryAt === -1 ? [] : url.slice(queryAt + 1).split('&');
}

function isTokenPair(pair: string): boolean {
  const [name = ''] = pair.split('=', 1);
  if (name === 'token') return true;
  if (!name.includes('%')) return false;
  try {
    return decodeURIComponent(name) === 'token';
  } catch {
    return false; // Not percent-encoded text, so another name.
  }
}

/** Characters; a longer one is none of the hub. */
export const maxTokenLength = 1024;
