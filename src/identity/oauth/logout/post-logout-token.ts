import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { lookupUpstream } from '../../../platform/addresses/upstream-lookup.ts';

/**
 * Sends a logout token to a client (OpenID Connect Back-Channel Logout 1.0 §2.5). Gives the status of the answer, of which
 * nothing else is read; a redirect is not followed. Throws where there is none, and when `signal` is aborted.
 */
export async function postLogoutToken(
  url: string,
  logoutToken: string,
  signal: AbortSignal,
): Promise<number> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  const sent = request(url, {
    method: 'POST',
    agent: false,
    lookup: lookupUpstream,
    signal,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  }).end(new URLSearchParams({ logout_token: logoutToken }).toString());
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined).destroy();
  return answer.statusCode ?? 0;
}
