import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';

/** What a client presents to prove who it is (RFC 6749 §2.3.1). */
export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Reads client credentials from HTTP Basic or from the body, never from both: a client must not use
 * more than one method in a request (RFC 6749 §2.3). Undefined when there are none.
 */
export function readClientCredentials(
  authorization: string | undefined,
  form: URLSearchParams,
): ClientCredentials | undefined {
  const basic = readBasicCredentials(authorization);
  const clientId = parameterValue(form, 'client_id');
  const clientSecret = parameterValue(form, 'client_secret');
  if (basic === undefined) {
    if (clientId === undefined || clientSecret === undefined) return undefined;
    return { clientId, clientSecret };
  }
  if (clientSecret !== undefined) {
    throw new OAuthError('invalid_request', 'The client authenticated in two ways at once.');
  }
  if (clientId !== undefined && clientId !== basic.clientId) {
    throw new OAuthError('invalid_request', 'The client named itself in two different ways.');
  }
  return basic;
}

function readBasicCredentials(authorization: string | undefined): ClientCredentials | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) {
    if (!/^basic\b/i.test(authorization ?? '')) return undefined;
    throw new OAuthError('invalid_client', 'The Authorization header is malformed.');
  }
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon === -1)
    throw new OAuthError('invalid_client', 'The Authorization header is malformed.');
  return {
    clientId: decodeFormText(text.slice(0, colon)),
    clientSecret: decodeFormText(text.slice(colon + 1)),
  };
}

/** Id and secret are form-encoded before they go into the header (RFC 6749 §2.3.1, appendix B). */
function decodeFormText(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (error) {
    throw new OAuthError('invalid_client', 'The Authorization header is not form-encoded.', {
      cause: error,
    });
  }
}
