import { randomInt } from 'node:crypto';
import { equalSecrets, hashSecret } from '../../../platform/crypto/hash.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import type { KeyvSpace } from '../../../platform/store/keyv-space.ts';
import type { Client } from '../clients/client.ts';
import { OAuthError } from '../oauth-error.ts';
import { requireParameter } from '../request-parameters.ts';
import type { ExchangeCode } from './code-exchange.ts';
import type { AnswerGrant } from './refresh-grant.ts';

/** What a device asked for, and what its user said to it (RFC 8628). */
export interface DeviceRequest {
  readonly clientId: string;
  readonly scope: string | undefined;
  /** What alone its token is to be good for (RFC 8707 §2). */
  readonly resource?: AccessTarget | undefined;
  /** Of the part of the device code that no page shows; the code challenge of what the device gets. */
  readonly secretHash: string;
  /** Where it was asked from. */
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
  readonly mayPollAtMs: number;
  readonly intervalSeconds: number;
  /** What it may be exchanged for, once it is decided. */
  readonly decision?: 'denied' | { readonly code: string };
}

/** Requests of devices, which wait for their users. */
export interface DeviceRequests {
  begin(
    client: Client,
    asked: Pick<DeviceRequest, 'scope' | 'resource' | 'address'>,
  ): Promise<{ readonly deviceCode: string; readonly userCode: string }>;
  /** The request of a code as a person types it, unless it has expired or is decided. */
  find(typed: string): Promise<(DeviceRequest & { readonly userCode: string }) | undefined>;
  /** False where it has expired or was decided meanwhile. */
  decide(userCode: string, decision: NonNullable<DeviceRequest['decision']>): Promise<boolean>;
  /**
   * The authorization code that the user let the device have, and its verifier. Throws `authorization_pending`,
   * `slow_down`, `access_denied`, `expired_token` (RFC 8628 §3.5), and `invalid_grant` for what was never given to this
   * client.
   */
  poll(
    deviceCode: string,
    client: Client,
  ): Promise<{ readonly code: string; readonly codeVerifier: string }>;
}

/** RFC 8628 §3.2. */
export const deviceCodeSeconds = 600;
export const pollSeconds = 5;

/** Letters that form no words, and look like no digits (RFC 8628 §6.1): 34 bits in eight of them. */
const alphabet = 'BCDFGHJKLMNPQRSTVWXZ';
const codeLength = 8;

export function createDeviceRequests({
  space,
  now = Date.now,
}: {
  readonly space: Pick<KeyvSpace<DeviceRequest>, 'get' | 'update'>;
  readonly now?: () => number;
}): DeviceRequests {
  /** For a while after its end it is known that it has ended. */
  const saved = (value: DeviceRequest) => ({
    value,
    lifetimeMs: value.expiresAtMs - now() + deviceCodeSeconds * 1000,
  });
  const isWaiting = (request: DeviceRequest) =>
    request.decision === undefined && request.expiresAtMs > now();

  return {
    async begin({ clientId }, asked) {
      const secret = randomSecret();
      for (;;) {
        const key = Array.from({ length: codeLength }, () => alphabet[randomInt(20)]).join('');
        const secretHash = hashSecret(secret);
        const stored = await space.update(key, (former) =>
          former === undefined
            ? saved({
                ...asked,
                clientId,
                secretHash,
                expiresAtMs: now() + deviceCodeSeconds * 1000,
                mayPollAtMs: 0,
                intervalSeconds: pollSeconds,
              })
            : undefined,
        );
        if (stored?.secretHash === secretHash)
          return { deviceCode: `${key}.${secret}`, userCode: spell(key) };
      }
    },

    async find(typed) {
      const key = keyOf(typed);
      const request = key && (await space.get(key));
      return request && isWaiting(request) ? { ...request, userCode: spell(key) } : undefined;
    },

    async decide(userCode, decision) {
      let isDone = false;
      await space.update(keyOf(userCode) ?? '', (former) => {
        isDone = former !== undefined && isWaiting(former);
        return former && isDone ? saved({ ...former, decision }) : undefined;
      });
      return isDone;
    },

    async poll(deviceCode, { clientId }) {
      const [shown = '', secret = ''] = deviceCode.split('.');
      const secretHash = hashSecret(secret);
      const isOwn = (request: DeviceRequest) =>
        request.clientId === clientId && equalSecrets(request.secretHash, secretHash);
      let isTooSoon = false;
      const request = await space.update(keyOf(shown) ?? '', (former) => {
        if (former === undefined || !isOwn(former) || !isWaiting(former)) return undefined;
        isTooSoon = now() < former.mayPollAtMs;
        // Who asks on and on costs no more writing.
        if (isTooSoon && former.intervalSeconds >= deviceCodeSeconds) return undefined;
        // "The interval MUST be increased by 5 seconds for this and all subsequent requests."
        const intervalSeconds = former.intervalSeconds + (isTooSoon ? 5 : 0);
        return saved({ ...former, intervalSeconds, mayPollAtMs: now() + intervalSeconds * 1000 });
      });
      if (request === undefined || !isOwn(request))
        throw new OAuthError('invalid_grant', 'The device_code is not one of this client.');
      const { decision } = request;
      if (decision === 'denied')
        throw new OAuthError('access_denied', 'The user denied the request.');
      if (decision !== undefined) return { ...decision, codeVerifier: secret };
      if (!isWaiting(request))
        throw new OAuthError('expired_token', 'The device_code has expired; ask for another one.');
      throw isTooSoon
        ? new OAuthError('slow_down', 'Wait 5 seconds longer between requests from now on.')
        : new OAuthError('authorization_pending', 'The user has not decided yet.');
    },
  };
}

/** Gives a device a token once its user has allowed it (RFC 8628 §3.4). */
export function createDeviceGrant({
  deviceRequests,
  exchangeCode,
}: {
  readonly deviceRequests: Pick<DeviceRequests, 'poll'>;
  readonly exchangeCode: ExchangeCode;
}): AnswerGrant {
  return async (client, form, resource) => {
    const allowed = await deviceRequests.poll(requireParameter(form, 'device_code'), client);
    return exchangeCode(client, { ...allowed, redirectUri: undefined, resource });
  };
}

/** As it is kept, whatever case and marks a person types; undefined for what is no user code. */
function keyOf(typed: string): string | undefined {
  const letters = typed.toUpperCase().replaceAll(/[^A-Z]/g, '');
  const isCode =
    letters.length === codeLength && [...letters].every((each) => alphabet.includes(each));
  return isCode ? letters : undefined;
}

const spell = (key: string): string => `${key.slice(0, 4)}-${key.slice(4)}`;
