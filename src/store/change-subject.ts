/**
 * What a change concerned, where that is known to be less than everything: caches then drop this much
 * alone, so that one person's logout does not make the hub look up everyone else again. A change that
 * could take a right in any other way is announced without a subject.
 */
export type ChangeSubject =
  /** A user was added; no one who was there before loses a right. */
  | { readonly kind: 'user_added' }
  /** A login ended, and with it every token that was bound to it. */
  | { readonly kind: 'session_ended'; readonly sessionId: string }
  | { readonly kind: 'tokens_revoked'; readonly tokenIds: readonly string[] };

/** With more tokens, dropping everything is the lesser work, and the subject would fit no notification. */
const mostTokenIds = 100;

/** The subject of a revocation; undefined, which means everything, where it concerns many tokens. */
export function tokensRevoked(tokenIds: readonly string[]): ChangeSubject | undefined {
  return tokenIds.length > mostTokenIds ? undefined : { kind: 'tokens_revoked', tokenIds };
}

/** Reads a subject another process sent. Undefined, which means everything, for whatever is not one. */
export function parseChangeSubject(value: unknown): ChangeSubject | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined;
  if (value.kind === 'user_added') return { kind: value.kind };
  if (value.kind === 'session_ended') {
    return 'sessionId' in value && typeof value.sessionId === 'string'
      ? { kind: value.kind, sessionId: value.sessionId }
      : undefined;
  }
  if (value.kind !== 'tokens_revoked' || !('tokenIds' in value)) return undefined;
  const { tokenIds } = value;
  return Array.isArray(tokenIds) && tokenIds.every((id) => typeof id === 'string')
    ? { kind: value.kind, tokenIds }
    : undefined;
}
