import type { Logger } from 'pino';
import { HubError } from '../../../platform/errors.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { User } from '../../users/user-store.ts';
import { keepShown, resolveClientScopes, type ScopeDecision } from '../clients/client-access.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { FailureLimit } from '../clients/failure-limit.ts';
import type { DeviceRequests } from '../grants/device-grant.ts';
import type { AuthorizationCodeStore } from '../tokens/authorization-code-store.ts';
import { type ConsentView, consentView } from './consent-view.ts';

/** A request of a device, for the person who is asked to allow it. */
export interface ShownDeviceRequest {
  readonly userCode: string;
  /** Where it was asked from. */
  readonly address: string;
  readonly consent: ConsentView;
}

/** Users say what becomes of the requests of their devices (RFC 8628 §3.3). */
export interface DeviceVerification {
  /**
   * Undefined for a code for which nothing waits. Throws `too_many_requests` for a user who tried too many, and
   * `forbidden` for one who may not use the client.
   */
  find(userCode: string, user: User): Promise<ShownDeviceRequest | undefined>;
  /** Throws the same, and `bad_request` where nothing waits any more. */
  decide(
    userCode: string,
    login: { readonly user: User; readonly sessionId: string },
    /** Scopes that were shown; undefined to deny. */
    shown: readonly string[] | undefined,
  ): Promise<void>;
}

export function createDeviceVerification({
  deviceRequests,
  clients,
  authorizationCodes,
  userCodeFailures,
  titleOfService,
  log,
  ...decision
}: ScopeDecision & {
  readonly deviceRequests: Pick<DeviceRequests, 'find' | 'decide'>;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly authorizationCodes: Pick<AuthorizationCodeStore, 'create'>;
  readonly userCodeFailures: FailureLimit;
  readonly titleOfService: (name: string) => Phrase | undefined;
  readonly log: Logger;
}): DeviceVerification {
  async function open(userCode: string, user: User) {
    const request = await userCodeFailures.attempt(
      user.id,
      () => deviceRequests.find(userCode),
      (retryAfterSeconds) =>
        new HubError('too_many_requests', text`Too many codes that do not work.`, {
          hint: text`Wait a moment, then type the code again.`,
          retryAfterSeconds,
        }),
    );
    const client = request && (await clients.find(request.clientId));
    if (request === undefined || client === undefined) return undefined;
    return {
      request,
      client,
      ...(await resolveClientScopes(client, user.name, request, decision)),
    };
  }

  return {
    async find(userCode, user) {
      const found = await open(userCode, user);
      if (found === undefined) return undefined;
      const { request, scopes, scopeContext } = found;
      return {
        userCode: request.userCode,
        address: request.address,
        consent: consentView({ scopes, context: scopeContext, titleOfService }),
      };
    },

    async decide(userCode, { user, sessionId }, shown) {
      const found = await open(userCode, user);
      if (found === undefined) throw nothingWaits();
      const { request, client, scopes } = found;
      const { clientId } = client;
      const code =
        shown &&
        (await authorizationCodes.create({
          clientId,
          userId: user.id,
          sessionId,
          redirectUri: undefined,
          scopes: keepShown(scopes, shown, client),
          codeChallenge: request.secretHash,
        }));
      const isDone = await deviceRequests.decide(
        userCode,
        code === undefined ? 'denied' : { code },
      );
      if (!isDone) throw nothingWaits();
      const { address } = request;
      const event = code === undefined ? 'device denied' : 'device allowed';
      log.info({ client: clientId, user: user.name, address }, event);
    },
  };
}

function nothingWaits(): HubError {
  return new HubError('bad_request', text`There is no such code, or it has expired.`, {
    hint: text`Your device shows another one when you begin again there.`,
  });
}
