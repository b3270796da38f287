import type { Middleware } from 'koa';
import {
  requireAllowedRequest,
  requireGrant,
  type ScopeDecision,
} from '../clients/client-access.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import { type DeviceRequests, deviceCodeSeconds, pollSeconds } from '../grants/device-grant.ts';
import { parameterValue } from '../request-parameters.ts';
import { type FindResource, requestedResource } from '../resource-indicators.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';
import type { KeepOpen } from './open-requests.ts';

/** The device authorization endpoint (RFC 8628 §3.1), which may name a resource (RFC 8707 §2). */
export function createDeviceAuthorizationEndpoint({
  clientAuthentication,
  deviceRequests,
  findResource,
  keepOpen,
  verificationUri,
  countRefusal,
  ...decision
}: ScopeDecision & {
  readonly clientAuthentication: ClientAuthentication;
  readonly deviceRequests: Pick<DeviceRequests, 'begin'>;
  readonly findResource: FindResource;
  readonly keepOpen: KeepOpen;
  /** The page on which users type the code. */
  readonly verificationUri: string;
  readonly countRefusal: CountRefusal;
}): Middleware {
  return createJsonEndpoint({ parameters: ['scope'], countRefusal }, async (request) => {
    const client = await clientAuthentication.require(request);
    requireGrant(client, 'device');
    const scope = parameterValue(request.form, 'scope');
    await requireAllowedRequest(client, scope, decision);
    const resource = await requestedResource(request.form, findResource);
    const { deviceCode, userCode } = await keepOpen(request, (address) =>
      deviceRequests.begin(client, { scope, resource, address }),
    );
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
