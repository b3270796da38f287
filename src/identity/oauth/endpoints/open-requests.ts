import type { IncomingMessage } from 'node:http';
import type { ClientAddressReader } from '../../../platform/http/request-address.ts';
import type { Client } from '../clients/client.ts';
import { countedAttempt, type FailureLimit } from '../clients/failure-limit.ts';
import { OAuthError } from '../oauth-error.ts';

/**
 * Keeps what clients begin: so much of a client, or of the network where anybody can begin it, and no more until it has
 * ended. `keep` gets the address. Throws OAuthError with 429.
 */
export type KeepOpen = <Result>(
  by: { readonly incoming: IncomingMessage; readonly client?: Client },
  keep: (address: string) => Promise<Result>,
) => Promise<Result>;

export function createKeepOpen({
  ofNetwork,
  ofClient,
  clientAddress,
  networkOf,
}: {
  readonly ofNetwork: FailureLimit;
  readonly ofClient: FailureLimit;
  readonly clientAddress: ClientAddressReader;
  readonly networkOf: (address: string) => string;
}): KeepOpen {
  return async ({ incoming, client }, keep) => {
    const { address } = clientAddress(incoming);
    const isOfNetwork = client === undefined || isOfAnybody(client);
    return await countedAttempt(
      isOfNetwork ? ofNetwork : ofClient,
      isOfNetwork ? networkOf(address) : client.clientId,
      () => keep(address),
      (retryAfterSeconds) =>
        new OAuthError('invalid_request', 'Too many requests; try again later.', {
          retryAfterSeconds,
        }),
    );
  };
}

/** Whether it takes no secret of an operator: a public client, or the server of a user, whose secret that user can read. */
const isOfAnybody = ({ isPublic, kind }: Client) => isPublic || kind === 'server';
