import type { IncomingMessage } from 'node:http';
import type { ClientAddressReader } from '../../../platform/http/request-address.ts';
import { countedAttempt, type FailureLimit } from '../clients/failure-limit.ts';
import { OAuthError } from '../oauth-error.ts';

/**
 * Keeps what public clients begin, which takes no secret: so much of one network, and no more until it has ended. `keep`
 * gets the address. Throws OAuthError with 429.
 */
export type KeepOpen = <Result>(
  incoming: IncomingMessage,
  keep: (address: string) => Promise<Result>,
) => Promise<Result>;

export function createKeepOpen({
  limit,
  clientAddress,
  networkOf,
}: {
  readonly limit: FailureLimit;
  readonly clientAddress: ClientAddressReader;
  readonly networkOf: (address: string) => string;
}): KeepOpen {
  return async (incoming, keep) => {
    const { address } = clientAddress(incoming);
    return await countedAttempt(
      limit,
      networkOf(address),
      () => keep(address),
      (retryAfterSeconds) =>
        new OAuthError('invalid_request', 'Too many requests; try again later.', {
          retryAfterSeconds,
        }),
    );
  };
}
