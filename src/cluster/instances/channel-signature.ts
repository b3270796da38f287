import type { Secret } from '../../platform/config/secret.ts';
import { createKeyedHash } from '../../platform/crypto/hash.ts';

/** Where instances reach one another, below the path of the hub. */
export const channelPath = 'instances/';

/** Headers of a call; none of this beginning reaches a server or service. */
export const channelHeaders = {
  sender: 'x-hub-instance',
  challenge: 'x-hub-challenge',
  signature: 'x-hub-signature',
} as const;

/** What a signature is about, so that one of a kind is never taken for another. */
export type SignedKind = 'proof' | 'call' | 'answer';

/** Signs what instances of one hub say to each other, by a key of their cookie secret. */
export interface ChannelSignature {
  /** HMAC-SHA256 of the parts in their order, base64url. */
  sign(kind: SignedKind, parts: readonly string[]): string;
  verify(kind: SignedKind, parts: readonly string[], signature: string): boolean;
}

export function createChannelSignature(secrets: readonly Secret[]): ChannelSignature {
  const hash = createKeyedHash(secrets, 'instance-channel');
  // As JSON, so that no part can run into the next.
  const textOf = (kind: SignedKind, parts: readonly string[]) => JSON.stringify([kind, ...parts]);
  return {
    sign: (kind, parts) => hash.sign(textOf(kind, parts)),
    verify: (kind, parts, signature) => hash.verify(textOf(kind, parts), signature),
  };
}
