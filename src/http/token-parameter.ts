/** Removes every `token` parameter from the query of a path or URL; the rest stays as it was. */
export function withoutTokenParameter(url: string): string {
  const queryAt = url.indexOf('?');
  if (queryAt === -1) return url;
  const pairs = url.slice(queryAt + 1).split('&');
  const kept = pairs.filter((pair) => !isTokenPair(pair));
  if (kept.length === pairs.length) return url;
  return kept.length === 0 ? url.slice(0, queryAt) : `${url.slice(0, queryAt)}?${kept.join('&')}`;
}

function isTokenPair(pair: string): boolean {
  const [name = ''] = pair.split('=', 1);
  if (name === 'token') return true;
  if (!name.includes('%')) return false;
  try {
    return decodeURIComponent(name) === 'token';
  } catch {
    return false;
  }
}
