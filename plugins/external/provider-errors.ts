import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import type { RefusalReason } from '../../src/plugin/plugin.ts';

/** What a failure at the provider means for the login. */
export interface ProviderFailure {
  /** `unavailable` may be over soon; all others are an answer. */
  readonly kind: 'unavailable' | 'token_refused' | Exclude<RefusalReason, 'credentials'>;
  /** For the operator: what happened and where to look. Holds nothing of the person. */
  readonly explanation: string;
}

/** A claim or a token is not what it must be. */
export class UntrustedAnswer extends Error {
  override readonly name = 'UntrustedAnswer';
}

/** An endpoint of the provider answered with a status other than success. */
export class UnexpectedStatus extends Error {
  override readonly name = 'UnexpectedStatus';
  readonly status: number;

  constructor(status: number, path: string) {
    super(`${path} was answered with ${status}`);
    this.status = status;
  }
}

/** Says what an error of a call to the provider means. */
export function explainFailure(error: unknown): ProviderFailure {
  if (error instanceof UntrustedAnswer) {
    return { kind: 'invalid_response', explanation: error.message };
  }
  const interruption = findInterruption(error);
  if (interruption !== undefined) return { kind: 'unavailable', explanation: interruption };
  if (error instanceof UnexpectedStatus) return explainStatus(error.status, error.message);
  if (error instanceof AuthorizationResponseError) {
    return error.error === 'access_denied'
      ? { kind: 'cancelled', explanation: 'the person or the provider denied the request' }
      : { kind: 'provider', explanation: `the provider refused the request: ${word(error.error)}` };
  }
  if (error instanceof ResponseBodyError) return explainTokenError(error);
  if (error instanceof WWWAuthenticateChallengeError) {
    return error.status === 401
      ? { kind: 'token_refused', explanation: 'the provider no longer accepts its own token (401)' }
      : {
          kind: 'provider',
          explanation: `the provider answered ${error.status}; check client_id and client_secret`,
        };
  }
  if (error instanceof ClientError) return explainClientError(error);
  return { kind: 'unavailable', explanation: `the provider cannot be reached: ${causes(error)}` };
}

/** An answer that did not come, or not to its end; it may be wrapped in an error about its content. */
function findInterruption(error: unknown): string | undefined {
  for (const { name, message } of chainOf(error)) {
    if (name === 'TimeoutError' || name === 'AbortError' || name === 'JWKSTimeout') {
      return 'the provider did not answer in time';
    }
    if (name === 'TypeError' && (message === 'terminated' || message === 'fetch failed')) {
      return `the provider cannot be reached: ${causes(error)}`;
    }
  }
  return undefined;
}

function explainTokenError({ error, status }: ResponseBodyError): ProviderFailure {
  if (status >= 500) {
    return { kind: 'unavailable', explanation: `the provider answered ${status}: ${word(error)}` };
  }
  if (error === 'invalid_grant') {
    return {
      kind: 'token_refused',
      explanation: 'the provider no longer accepts the code or the refresh token',
    };
  }
  const advice = error.includes('client') ? '; check client_id and client_secret' : '';
  return {
    kind: 'provider',
    explanation: `the provider refused the token: ${word(error)}${advice}`,
  };
}

function explainClientError(error: ClientError): ProviderFailure {
  const { code, cause } = error;
  if (cause instanceof Response) {
    return explainStatus(cause.status, error.message);
  }
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') {
    const explanation = `${causes(error)}; compare the clocks of both machines, or raise clock_tolerance`;
    return { kind: 'invalid_response', explanation };
  }
  if (code === undefined) {
    return { kind: 'unavailable', explanation: `the provider cannot be reached: ${causes(error)}` };
  }
  return { kind: 'invalid_response', explanation: causes(error) };
}

function explainStatus(status: number, message: string): ProviderFailure {
  if (status === 401) {
    return {
      kind: 'token_refused',
      explanation: 'the provider no longer accepts its own token (401)',
    };
  }
  return status >= 500 || status === 429
    ? { kind: 'unavailable', explanation: `the provider answered ${status}` }
    : { kind: 'invalid_response', explanation: `the provider answered ${status}: ${message}` };
}

/** The messages of an error and its causes; never their values, which hold tokens and claims. */
function causes(error: unknown): string {
  const messages = chainOf(error).map((each) => {
    const { code } = each as { code?: unknown };
    return typeof code === 'string' && each.message === '' ? code : each.message;
  });
  return messages.join(': ').slice(0, 500);
}

/** An error and what caused it, at most four deep. */
function chainOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < 4; at = at.cause) chain.push(at);
  return chain;
}

/** An error code as a provider sent it, fit for a log line. */
function word(text: string): string {
  return text.replaceAll(/[^\w.-]/g, '?').slice(0, 100);
}
