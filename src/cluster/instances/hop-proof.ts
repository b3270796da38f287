import type { Secret } from '../../platform/config/secret.ts';
import { createKeyedHash } from '../../platform/crypto/hash.ts';
import type { HopClient } from '../../platform/http/request-address.ts';

/** A request as it is passed on. */
export interface HopRequest {
  /** Id of the instance it goes to. */
  readonly to: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
}

/** Proves that a request was passed on by an instance of this hub, and says for whom. */
export interface HopProof {
  /** The value of the header. */
  make(request: HopRequest, client: HopClient): string;
  /** The client of a request with this header; undefined when no instance made it for this very request. */
  read(request: HopRequest, header: string): HopClient | undefined;
}

/**
 * It is bound to the request and to its receiver, and needs no clock: sent again it would only ask once
 * more for what the receiver checks as it does everything else.
 */
export function createHopProof(secrets: readonly Secret[]): HopProof {
  const hash = createKeyedHash(secrets, 'instance-hop');
  const textOf = ({ to, method, target }: HopRequest, payload: string) =>
    JSON.stringify([to, method, target, payload]);

  return {
    make(request, { address, protocol, host, isTrustedProxy, certificate }) {
      const payload = Buffer.from(
        JSON.stringify([address, protocol, host, isTrustedProxy, certificate]),
      ).toString('base64url');
      return `${payload}.${hash.sign(textOf(request, payload))}`;
    },

    read(request, header) {
      const [payload = '', signature = '', ...rest] = header.split('.');
      if (rest.length > 0 || !hash.verify(textOf(request, payload), signature)) return undefined;
      const [address, protocol, host, isTrustedProxy, certificate] = JSON.parse(
        Buffer.from(payload, 'base64url').toString(),
      ) as [string, HopClient['protocol'], string, boolean, string | null | undefined];
      return { address, protocol, host, isTrustedProxy, certificate: certificate ?? undefined };
    },
  };
}
