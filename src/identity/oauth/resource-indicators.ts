import { type AccessTarget, accessScopeFor } from '../../platform/protocol/client-id.ts';
import { OAuthError } from './oauth-error.ts';

/** The service or user's server that a URL belongs to; undefined for one that belongs to none of this hub. */
export type FindResource = (url: URL) => Promise<AccessTarget | undefined>;

/**
 * What a request wants its token to be good for alone (RFC 8707 §2): one service or server, however many of its
 * addresses are named. Throws `invalid_target`.
 */
export async function requestedResource(
  parameters: URLSearchParams,
  findResource: FindResource,
): Promise<AccessTarget | undefined> {
  const found = new Map<string, AccessTarget>();
  for (const indicator of parameters.getAll('resource')) {
    const url = indicator.includes('#') ? null : URL.parse(indicator);
    const target = url === null ? undefined : await findResource(url);
    if (target === undefined)
      throw new OAuthError('invalid_target', 'The resource is no service or server of this hub.');
    found.set(accessScopeFor(target), target);
  }
  if (found.size > 1)
    throw new OAuthError('invalid_target', 'A token is for one service or server only.');
  return found.values().next().value;
}
