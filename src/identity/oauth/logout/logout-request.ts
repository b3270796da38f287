import { HubError } from '../../../platform/errors.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { absoluteRedirectUri, isSameRedirectUri } from '../clients/redirect-uri.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { SessionIdOf } from '../openid/id-token.ts';
import { findRepeatedParameter, parameterValue } from '../request-parameters.ts';

/** A logout that a client asks for. */
export interface LogoutRequest {
  /** Of the client; undefined where the request does not say whose it is. */
  readonly clientName: Phrase | undefined;
  /** Where the browser goes on to. */
  readonly target: string | undefined;
  /** The same to be asked once more, as a query: with the client in place of the hint. */
  readonly query: string;
  /** Whether it is of the login that was asked about: nobody else can know that, so the user is not asked. */
  readonly isHinted: boolean;
}

/** Whose login the browser has. */
export interface CurrentLogin {
  readonly userId: string;
  readonly sessionId: string;
}

/**
 * Reads a logout request (OpenID Connect RP-Initiated Logout 1.0 §2); undefined where there is none. An ID token that
 * has expired will do, and one that cannot be verified counts as left out: its key may be gone by now. Throws
 * `bad_request` for a hint of another client, and for a target that the client has not registered (§3).
 */
export type ReadLogoutRequest = (
  parameters: URLSearchParams,
  login: CurrentLogin | undefined,
) => Promise<LogoutRequest | undefined>;

/** Those by which it is told from a logout on the hub's own pages. */
const parameterNames = ['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state'];

/** Whether a logout is asked for by a client. */
export function isLogoutRequest(parameters: URLSearchParams): boolean {
  return parameterNames.some((name) => parameters.has(name));
}

export function createLogoutRequestReader(deps: {
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly signingKeys: Pick<SigningKeys, 'verify'>;
  readonly sessionIdOf: SessionIdOf;
  readonly issuer: string;
}): ReadLogoutRequest {
  return async (parameters, login) => {
    if (!isLogoutRequest(parameters)) return undefined;
    const repeated = findRepeatedParameter(parameters, parameterNames);
    if (repeated !== undefined)
      throw new HubError('bad_request', text`The parameter ${repeated} was sent more than once.`);
    const [hint, named, uri, state] = parameterNames.map((name) =>
      parameterValue(parameters, name),
    );
    const hinted =
      hint === undefined ? undefined : await deps.signingKeys.verify(hint, deps.issuer);
    const audience = typeof hinted?.aud === 'string' ? hinted.aud : undefined;
    if (named !== undefined && audience !== undefined && named !== audience) {
      throw new HubError('bad_request', text`The id_token_hint is of another client.`);
    }
    const client = await deps.clients.find(audience ?? named ?? '');
    if (uri !== undefined && client !== undefined) {
      const registered = client.postLogoutUris ?? [];
      if (!registered.some((each) => isSameRedirectUri(uri, each, client.origin))) {
        throw new HubError('bad_request', text`${client.name} has not registered where to go on.`, {
          hint: text`The address has to be among its oauth_post_logout_uris, letter by letter.`,
        });
      }
    }
    const again = new URLSearchParams({ client_id: client?.clientId ?? named ?? '' });
    if (uri !== undefined) again.set('post_logout_redirect_uri', uri);
    if (state !== undefined) again.set('state', state);
    return {
      clientName: client?.name,
      query: `${again}`,
      target: client && uri && withState(absoluteRedirectUri(uri, client.origin), state),
      isHinted:
        login !== undefined &&
        hinted?.sub === login.userId &&
        hinted['sid'] === deps.sessionIdOf(login.sessionId, audience ?? ''),
    };
  };
}

/** §2: `state` is passed back as it came. */
function withState(uri: string, state: string | undefined): string {
  if (state === undefined) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`;
}
