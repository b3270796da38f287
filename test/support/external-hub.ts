import { FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';
import {
  type OidcProvider,
  type OidcProviderOptions,
  passProvider,
  providerClient,
  startOidcProvider,
} from './oidc-provider.ts';
import { createTestHub, type TestHub, type TestHubConfig } from './test-hub.ts';

/** A hub whose people log in at a real provider. */
export interface ExternalHub extends AsyncDisposable {
  readonly hub: TestHub;
  readonly provider: OidcProvider;
  /** Logs somebody in at the provider; the browser has the hub's cookies afterwards. */
  logIn(name: string, browser?: FakeBrowser): Promise<FakeBrowser>;
  /** Messages of the hub's log lines, with their fields as text. */
  log(): string;
}

/** Starts a provider and a hub with it as the only way to log in. */
export async function createExternalHub(
  config: TestHubConfig & { readonly options?: Readonly<Record<string, unknown>> } = {},
  providerOptions: Partial<OidcProviderOptions> = {},
): Promise<ExternalHub> {
  await using starting = new AsyncDisposableStack();
  const { options, ...sections } = config;
  const hubUrl = `http://127.0.0.1:${await freePort()}/`;
  const provider = starting.use(await startOidcProvider({ hubUrl, ...providerOptions }));
  const hub = starting.use(
    await createTestHub({
      ...sections,
      Hub: { bind_url: hubUrl, authenticator_class: 'oidc', ...sections.Hub },
      OIDCAuthenticator: {
        issuer: provider.issuer,
        ...(providerOptions.registration === true ? {} : providerClient),
        allow_insecure_requests: true,
        login_service: 'Example Login',
        ...options,
      },
    }),
  );
  const started = starting.move();
  return {
    hub,
    provider,
    log: () => hub.logLines.map((line) => JSON.stringify(line)).join('\n'),
    async logIn(name, browser = new FakeBrowser()) {
      const begun = await browser.request(`${hub.url}hub/login/with/oidc`);
      const back = await passProvider(browser, begun.headers.location ?? '', name);
      const landed = await browser.request(back.headers.location ?? '');
      if (landed.status !== 302) throw new Error(`${landed.status}: ${landed.body}`);
      return browser;
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
