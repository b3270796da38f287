import type { Middleware } from 'koa';
import type { ClientAddressReader } from '../../../platform/http/request-address.ts';
import { emptyMembership } from '../../rbac/membership.ts';
import { requireGrant, type ScopeDecision } from '../clients/client-access.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import type { FailureLimit } from '../clients/failure-limit.ts';
import { type DeviceRequests, deviceCodeSeconds, pollSeconds } from '../grants/device-grant.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
import { resolveRequestedScopes } from '../requested-scopes.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/** The device authorization endpoint (RFC 8628 §3.1). */
export function createDeviceAuthorizationEndpoint({
  clientAuthentication,
  deviceRequests,
  openDeviceRequests,
  clientAddress,
  networkOf,
  authorizer: { catalogue },
  findRole,
  verificationUri,
  countRefusal,
}: ScopeDecision & {
  readonly clientAuthentication: ClientAuthentication;
  readonly deviceRequests: Pick<DeviceRequests, 'begin'>;
  /** Bounds those of one network: public clients need no secret to ask. */
  readonly openDeviceRequests: FailureLimit;
  readonly clientAddress: ClientAddressReader;
  readonly networkOf: (address: string) => string;
  /** The page on which users type the code. */
  readonly verificationUri: string;
  readonly countRefusal: CountRefusal;
}): Middleware {
  return createJsonEndpoint({ parameters: ['scope'], countRefusal }, async (request) => {
    const client = await clientAuthentication.require(request);
    requireGrant(client, 'device');
    const scope = parameterValue(request.form, 'scope');
    // What the client may ask for at all; what its user holds of that is known once there is one.
    const nobody = { kind: 'user', name: '*' } as const;
    const held = { grantedScopes: new Set<string>(), membership: emptyMembership };
    await resolveRequestedScopes(scope, { client, owner: nobody, catalogue, ...held }, findRole);
    const { address } = clientAddress(request.incoming);
    let begun = { deviceCode: '', userCode: '' };
    await openDeviceRequests.attempt(
      networkOf(address),
      // Each one counts, as a failure would.
      async () => {
        begun = await deviceRequests.begin(client, { scope, address });
        return undefined;
      },
      (retryAfterSeconds) =>
        new OAuthError('invalid_request', 'Too many requests of devices; try again later.', {
          retryAfterSeconds,
        }),
    );
    const { deviceCode, userCode } = begun;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: verificationUri,
      verification_uri_complete: `${verificationUri}?user_code=${userCode}`,
      expires_in: deviceCodeSeconds,
      interval: pollSeconds,
    };
  });
}
