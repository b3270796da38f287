import { OAuthError } from './oauth-error.ts';

/**
 * The value of a parameter. One that was sent without a value counts as left out (RFC 6749 §3.1,
 * §3.2).
 */
export function parameterValue(parameters: URLSearchParams, name: string): string | undefined {
  const value = parameters.get(name);
  return value === null || value === '' ? undefined : value;
}

/** The value of a parameter that the request must have. */
export function requireParameter(parameters: URLSearchParams, name: string): string {
  const value = parameterValue(parameters, name);
  if (value === undefined) {
    throw new OAuthError('invalid_request', `The parameter ${name} is missing.`);
  }
  return value;
}

/** First of the names that occurs more than once. Unknown parameters may repeat: they are ignored. */
export function findRepeatedParameter(
  parameters: URLSearchParams,
  names: readonly string[],
): string | undefined {
  return names.find((name) => parameters.getAll(name).length > 1);
}

/** Parameters must not be included more than once (RFC 6749 §3.1, §3.2). */
export function rejectRepeatedParameters(
  parameters: URLSearchParams,
  names: readonly string[],
): void {
  const repeated = findRepeatedParameter(parameters, names);
  if (repeated !== undefined) {
    throw new OAuthError('invalid_request', `The parameter ${repeated} was sent more than once.`);
  }
}
