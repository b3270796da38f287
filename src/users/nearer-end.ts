/**
 * A page as counted from whichever end of the list it is nearer to: a database walks over all rows
 * before the page, so the last page would be the slowest.
 */
export function nearerEnd(
  { offset, limit }: { readonly offset: number; readonly limit: number },
  total: number,
) {
  const rest = total - offset - limit;
  if (offset <= rest) return { offset, limit, isFromEnd: false };
  return {
    offset: Math.max(rest, 0),
    // Beyond the end there is nothing; the last page may be a short one.
    limit: Math.max(limit + Math.min(rest, 0), 0),
    isFromEnd: true,
  };
}
