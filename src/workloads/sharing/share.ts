import type { Server } from '../servers/server.ts';

/** Whom a server is shared with. */
export interface ShareRecipient {
  readonly kind: 'user' | 'group';
  readonly name: string;
}

/** What a user or the members of a group may do with another user's server. */
export interface Share {
  readonly server: Server;
  readonly recipient: ShareRecipient;
  /** Names in order; each means this server alone. */
  readonly scopeNames: readonly string[];
  readonly createdAt: Date;
}

/** A share in a list. */
export interface ListedShare extends Share {
  /** Of its place there, for the edge of a page. */
  readonly key: string;
}

/** A code that gives a share to each user who accepts it before it expires. */
export interface ShareCode {
  /** `sc_…`; not the code. */
  readonly id: string;
  readonly server: Server;
  readonly scopeNames: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly exchangeCount: number;
  readonly lastExchangedAt: Date | undefined;
}

/** What a server is shared with where nothing else is said. */
export const defaultScopeNames = ['access:servers'] as const;

/** Scopes of a share as they are held: restricted to its server. */
export function scopesOfShare({
  server,
  scopeNames,
}: {
  readonly server: { readonly userName: string; readonly name: string };
  readonly scopeNames: readonly string[];
}): string[] {
  return scopeNames.map((name) => `${name}!server=${server.userName}/${server.name}`);
}
