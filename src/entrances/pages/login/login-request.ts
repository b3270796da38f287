import type { Context } from 'koa';
import type { BrowserRequest } from '../../../identity/authentication/external-logins.ts';
import type { ClientAddress } from '../../../platform/http/request-address.ts';
import type { LoginRequest } from '../../../plugin/host/authenticator.ts';

const authenticationTimeoutMs = 30_000;

/** What the logins at external providers need of a request. */
export function browserRequestOf(ctx: Context): BrowserRequest {
  return { cookieHeader: ctx.req.headers.cookie, login: loginRequestOf(ctx) };
}

/** What an authenticator may know of the request of a user who logs in. */
export function loginRequestOf(ctx: Context): LoginRequest {
  const client = ctx.state['client'] as ClientAddress;
  const headers = Object.fromEntries(
    Object.entries(ctx.req.headersDistinct).map(([name, values]) => [name, values?.join('\n')]),
  );
  return {
    address: client.address,
    peerAddress: client.peerAddress,
    isTrustedProxy: client.isTrustedProxy,
    userAgent: ctx.get('User-Agent').slice(0, 400),
    clientCertificate: client.certificate,
    headers,
    signal: AbortSignal.timeout(authenticationTimeoutMs),
  };
}
