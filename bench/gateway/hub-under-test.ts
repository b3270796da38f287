import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeBrowser } from '../../test/support/fake-browser.ts';
import { freePort } from '../../test/support/free-port.ts';
import { submitLogin, until } from '../../test/support/test-hub.ts';
import { type Cores, type PinnedProcess, startPinned } from './pinned-process.ts';

/** A hub of its own, started from its command line on a configuration file. */
export interface HubUnderTest extends AsyncDisposable {
  readonly process: PinnedProcess;
  readonly port: number;
  readonly url: string;
  /** Cookie header of a browser that went through login and the OAuth flow of the guarded service. */
  readonly cookies: string;
  /** A token of that user. */
  readonly token: string;
}

const adminToken = 'bench-admin-token-of-sixteen';

/** Starts a hub with a guarded service, a public one and as many further routes as asked for. */
export async function startHub(options: {
  readonly core: Cores;
  readonly directory: string;
  readonly upstreamUrl: string;
  /** Behind the public service `echo`. */
  readonly echoUrl?: string;
  readonly extraRoutes?: number;
  readonly nodeOptions?: readonly string[];
  /** `Hub.gateways`; they end with the hub. */
  readonly gateways?: number;
  /** Files of a certificate for `hub.localhost`, with which it ends TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Further settings, in place of these. */
  readonly settings?: { readonly Hub?: object; readonly Proxy?: object };
}): Promise<HubUnderTest> {
  const {
    core,
    directory,
    upstreamUrl,
    echoUrl = upstreamUrl,
    extraRoutes = 1,
    nodeOptions = [],
    gateways = 0,
    tls,
    settings = {},
  } = options;
  const [port, internalPort] = [await freePort(), await freePort()];
  const url = tls ? `https://hub.localhost:${port}/` : `http://127.0.0.1:${port}/`;
  const file = join(directory, `hub-${port}.json`);
  const routes = Array.from({ length: extraRoutes }, (_, index) => [
    `/route/number-${index}/`,
    `${upstreamUrl}/`,
  ]);
  await writeFile(
    file,
    JSON.stringify({
      Hub: {
        bind_url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/`,
        public_url: url,
        ...(tls && { certificates: [tls] }),
        hub_bind_url: `http://127.0.0.1:${internalPort}`,
        database_url: `sqlite:hub-${port}.sqlite`,
        log_dir: `logs-${port}`,
        cookie_secret: randomBytes(32).toString('hex'),
        authenticator_class: 'dummy',
        // As operators run it: with a line for each request.
        log_level: 'info',
        gateways,
        gateway_linger: 0,
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
        services: [
          { name: 'admin', admin: true, api_token: adminToken },
          {
            name: 'guarded',
            url: upstreamUrl,
            access: 'gateway',
            api_token: 'bench-guarded-service-token',
            oauth_no_confirm: true,
          },
          { name: 'open', url: upstreamUrl, access: 'public' },
          { name: 'echo', url: echoUrl, access: 'public' },
        ],
        ...settings.Hub,
      },
      DummyAuthenticator: { password: 'test' },
      Authenticator: { allow_all: true },
      Proxy: { extra_routes: Object.fromEntries(routes), ...settings.Proxy },
    }),
  );
  const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
  const hubProcess = await startPinned({
    core,
    command: [process.execPath, ...nodeOptions, main, 'start', '--config', file],
    port,
    isEndedByTerm: gateways > 0,
  });

  const guarded = `${url}services/guarded/`;
  const browser = new FakeBrowser();
  await until(async () => (await browser.request(guarded)).status !== 503, 'the service is ready');
  const login = await submitLogin(browser, url, 'bench', 'test');
  if (login.status !== 302) throw new Error(`the login was answered with ${login.status}`);
  const page = await browser.open(guarded);
  if (page.status !== 200 || page.url !== guarded) {
    throw new Error(`the guarded service was answered with ${page.status} at ${page.url}`);
  }
  const issued = await fetch(`http://127.0.0.1:${internalPort}/hub/api/users/bench/tokens`, {
    method: 'POST',
    headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
    body: '{"note":"bench"}',
  });
  const { token } = (await issued.json()) as { token: string };
  return {
    process: hubProcess,
    port,
    url,
    cookies: browser.cookieHeader(guarded),
    token,
    [Symbol.asyncDispose]: () => hubProcess[Symbol.asyncDispose](),
  };
}
