import type {
  AuthenticationResult,
  AuthenticatorPlugin,
  ExternalAuthenticator,
  LoginRequest,
} from '../../src/plugin/plugin.ts';
import { createTestHost, type TestHost } from '../contract/testing.ts';
import type { ScriptedProvider } from './scripted-provider.ts';

export const anyRequest = (): LoginRequest => ({
  address: '192.0.2.1',
  peerAddress: '192.0.2.1',
  isTrustedProxy: false,
  userAgent: '',
  headers: {},
  signal: AbortSignal.timeout(30_000),
});

/** Goes through a login with a plugin alone, without a hub. */
export async function loginWithPlugin<Options>(
  plugin: AuthenticatorPlugin<Options, ExternalAuthenticator>,
  options: object,
  provider: Pick<ScriptedProvider, 'issuer' | 'nonce'>,
): Promise<{ result: AuthenticationResult; location: URL; host: TestHost }> {
  const host = await createTestHost();
  const parsed = plugin.optionsSchema.parse({ allow_insecure_requests: true, ...options });
  const authenticator = await plugin.create(parsed, host);
  const begun = await authenticator.beginLogin(anyRequest());
  const location = new URL(begun.location);
  provider.nonce = location.searchParams.get('nonce') ?? '';
  const url = new URL(host.callbackUrl);
  url.search = new URLSearchParams({
    code: 'a code',
    state: begun.state,
    iss: provider.issuer,
  }).toString();
  const result = await authenticator.completeLogin(
    { url, state: begun.state, pending: begun.pending },
    anyRequest(),
  );
  await authenticator[Symbol.asyncDispose]?.();
  return { result, location, host };
}
