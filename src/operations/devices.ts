import { z } from 'zod';
import type { DeviceVerification } from '../identity/oauth/endpoints/device-verification.ts';
import { operation, view } from './operation.ts';
import { ownLoginOf, ownUserOf } from './own-user.ts';

export interface Deps {
  readonly deviceVerification: DeviceVerification;
}

/** Devices and command lines that ask to be let in. */
export const deviceOperations = [
  view({
    id: 'viewDeviceRequest',
    path: '/device',
    scopes: 'authenticated',
    query: z.object({ user_code: z.string().optional() }),
  }).handle(async ({ caller, query }, { deviceVerification }: Deps) => {
    const { user_code: userCode } = query;
    const request =
      userCode === undefined
        ? undefined
        : await deviceVerification.find(userCode, ownUserOf(caller));
    return { userCode, request };
  }),
  operation({
    id: 'decideDeviceRequest',
    audience: 'page',
    method: 'POST',
    path: '/device',
    audit: ['oauth.authorize'],
    tag: 'oauth',
    summary: 'Allow or deny what a device asks for (RFC 8628)',
    scopes: 'authenticated',
    // With offline access it lasts longer than the login.
    needsRecentLogin: true,
    body: z.object({
      user_code: z.string(),
      decision: z.enum(['allow', 'deny']),
      scopes: z.array(z.string()),
    }),
    answers: { 204: { description: 'The device hears of it when it next asks.' } },
  }).handle(async ({ caller, body }, { deviceVerification }: Deps) => {
    const shown = body.decision === 'allow' ? body.scopes : undefined;
    await deviceVerification.decide(body.user_code, ownLoginOf(caller), shown);
  }),
];
