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
  | { readonly kind: 'tokens_revoked'; readonly tokenIds: readonly string[] }
  | StateChange;

/** Something is elsewhere or in another state than before: takes no right from anyone. */
export type StateChange =
  /** A user's server started, ended, changed hands or was removed. */
  | { readonly kind: 'server_changed'; readonly serverId: string }
  /** An instance of the hub came or went. */
  | { readonly kind: 'instances_changed' }
  /** A service started, ended or changed hands. */
  | { readonly kind: 'services_changed' };

/** With more tokens, dropping everything is the lesser work, and the subject would fit no notification. */
const mostTokenIds = 100;

/** The subject of a revocation; undefined, which means everything, where it concerns many tokens. */
export function tokensRevoked(tokenIds: readonly string[]): ChangeSubject | undefined {
  return tokenIds.length > mostTokenIds ? undefined : { kind: 'tokens_revoked', tokenIds };
}

/** Reads a subject another process sent. Undefined, which means everything, for whatever is not one. */
export function parseChangeSubject(value: unknown): ChangeSubject | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined;
  switch (value.kind) {
    case 'user_added':
    case 'instances_changed':
    case 'services_changed':
      return { kind: value.kind };
    case 'server_changed':
      return 'serverId' in value && typeof value.serverId === 'string'
        ? { kind: value.kind, serverId: value.serverId }
        : undefined;
  }
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
