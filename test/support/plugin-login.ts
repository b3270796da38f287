import type { AuthenticationResult, AuthenticatorPlugin, LoginRequest } from '../../src/plugin.ts';
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
  plugin: AuthenticatorPlugin<Options>,
  options: object,
  provider: Pick<ScriptedProvider, 'issuer' | 'nonce'>,
): Promise<{ result: AuthenticationResult | undefined; location: URL; host: TestHost }> {
  const host = await createTestHost();
  const parsed = plugin.optionsSchema.parse({ allow_insecure_requests: true, ...options });
  const authenticator = await plugin.create(parsed, host);
  const begun = await authenticator.beginLogin?.(anyRequest());
  const location = new URL(begun?.location ?? 'no-location:');
  provider.nonce = location.searchParams.get('nonce') ?? '';
  const state = begun?.state ?? '';
  const url = new URL(host.callbackUrl);
  url.search = new URLSearchParams({ code: 'a code', state, iss: provider.issuer }).toString();
  const result = await authenticator.completeLogin?.(
    { url, state, pending: begun?.pending ?? {} },
    anyRequest(),
  );
  await authenticator[Symbol.asyncDispose]?.();
  return { result, location, host };
}
