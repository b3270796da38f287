import type { Middleware } from 'koa';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import { HubError } from '../../../platform/errors.ts';
import type { KeyvSpace } from '../../../platform/store/keyv-space.ts';
import { text } from '../../../platform/texts/text.ts';
import { requireAllowedRequest, type ScopeDecision } from '../clients/client-access.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import { OAuthError } from '../oauth-error.ts';
import { answeredRequestUrl } from '../openid/openid-request.ts';
import { parameterValue, requireParameter } from '../request-parameters.ts';
import {
  type AuthorizationRequestContext,
  readAuthorizationRequest,
} from './authorization-request.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';
import type { KeepOpen } from './open-requests.ts';

/** An authorization request, with what follows once it is answered. */
export interface OpenedRequest {
  readonly parameters: URLSearchParams;
  readonly isPushed: boolean;
  /** Path and query to come back to once the user has logged in or chosen an account: the same, without the question. */
  answeredUrl(url: string): Promise<string>;
  /** After the answer to the client: what was pushed is good for one (RFC 9126 §4). */
  end(): Promise<void>;
}

/** Authorization requests that clients send beforehand (RFC 9126). */
export interface PushedRequests {
  push(parameters: URLSearchParams): Promise<string>;
  /**
   * The request that a browser brings, or that it names by `request_uri`: then nothing but what was pushed counts. Throws
   * `bad_request` for one that is unknown, has ended or was pushed by another client.
   */
  open(query: URLSearchParams): Promise<OpenedRequest>;
}

const uriPrefix = 'urn:ietf:params:oauth:request_uri:';
/** Long enough for its user to log in. */
export const pushedRequestSeconds = 600;

export function createPushedRequests({
  space,
}: {
  readonly space: Pick<KeyvSpace<string>, 'get' | 'set' | 'delete'>;
}): PushedRequests {
  const keep = (key: string, parameters: URLSearchParams) =>
    space.set(key, parameters.toString(), pushedRequestSeconds * 1000);

  return {
    async push(parameters) {
      const secret = randomSecret();
      await keep(hashSecret(secret), parameters);
      return uriPrefix + secret;
    },

    async open(query) {
      const uri = parameterValue(query, 'request_uri');
      if (uri?.startsWith(uriPrefix) !== true) {
        return {
          parameters: query,
          isPushed: false,
          answeredUrl: async (url) => answeredRequestUrl(url),
          end: async () => undefined,
        };
      }
      const key = hashSecret(uri.slice(uriPrefix.length));
      const parameters = new URLSearchParams(await space.get(key));
      const clientId = parameterValue(query, 'client_id');
      if (clientId === undefined || parameterValue(parameters, 'client_id') !== clientId) {
        throw new HubError('bad_request', text`This request of an application has ended.`, {
          hint: text`Begin again at the application.`,
        });
      }
      return {
        parameters,
        isPushed: true,
        async answeredUrl(url) {
          const answered = answeredRequestUrl(`?${parameters}`);
          await keep(key, new URLSearchParams(answered));
          const shown = ['login_hint', 'ui_locales'].flatMap((name) =>
            parameters.getAll(name).map((value): [string, string] => [name, value]),
          );
          return shown.length === 0 ? url : `${url}&${new URLSearchParams(shown)}`;
        },
        end: async () => void (await space.delete(key)),
      };
    },
  };
}

/** The pushed authorization request endpoint (RFC 9126 §2). */
export function createPushEndpoint({
  clientAuthentication,
  pushedRequests,
  keepOpen,
  countRefusal,
  ...context
}: AuthorizationRequestContext &
  ScopeDecision & {
    readonly clientAuthentication: ClientAuthentication;
    readonly pushedRequests: Pick<PushedRequests, 'push'>;
    readonly keepOpen: KeepOpen;
    readonly countRefusal: CountRefusal;
  }): Middleware {
  const options = { parameters: ['request_uri'], status: 201, countRefusal };
  return createJsonEndpoint(options, async (request) => {
    const client = await clientAuthentication.require(request);
    const parameters = new URLSearchParams(request.form);
    // Also beside HTTP Basic: it is a parameter of the request as well (§2.1).
    requireParameter(parameters, 'client_id');
    for (const name of [...parameters.keys()])
      if (name.startsWith('client_') && name !== 'client_id') parameters.delete(name);
    if (parameters.has('request_uri'))
      throw new OAuthError('invalid_request', 'The parameter request_uri must not be pushed.');
    const push = async () => {
      const read = await readAuthorizationRequest(parameters, context).catch(asOAuthError);
      if (read.refused !== undefined) throw read.refused.error;
      await requireAllowedRequest(client, read.request.scope, context);
      return await pushedRequests.push(parameters);
    };
    return {
      request_uri: await keepOpen({ incoming: request.incoming, client }, push),
      expires_in: pushedRequestSeconds,
    };
  });
}

/** What a browser would be shown as a page is told the client here. */
function asOAuthError(error: unknown): never {
  if (!(error instanceof HubError)) throw error;
  throw new OAuthError('invalid_request', error.message, { cause: error });
}
