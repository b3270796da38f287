import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestHub } from './test-hub.ts';

/** An OAuth client on an origin of its own; each of its services is a client of the hub. */
export interface OAuthApp extends AsyncDisposable {
  /** Entries of `Hub.services`. */
  readonly services: readonly Readonly<Record<string, unknown>>[];
  /** Answers from now on. */
  connect(hub: Pick<TestHub, 'url' | 'apiUrl'>): void;
  /** Begins a login at the hub. The page at its end says `<service>: <user or error>` in `#outcome`. */
  loginUrl(service: string, scope?: string): string;
  /** To which that redirects. */
  authorizeUrl(service: string, scope?: string): string;
  /** A page on the origin of a service that opens a popup at `opens`. */
  openerUrl(service: string, opens: string): string;
  /** The Referer of each visit of a callback; empty where there was none. */
  readonly referers: readonly string[];
}

/** What differs between the clients of an app. */
export interface OAuthAppService {
  readonly name: string;
  /** The host of its redirect URI, with the port of the app; the hub's own prefix when left out. */
  readonly host?: string;
  /** The host to whose page its callback redirects. */
  readonly thenHost?: string;
  readonly noConfirm?: boolean;
}

/** Listens at once; `*.localhost` is this machine for browsers. */
export async function createOAuthApp(services: readonly OAuthAppService[]): Promise<OAuthApp> {
  let hub: Pick<TestHub, 'url' | 'apiUrl'> | undefined;
  const referers: string[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const originOf = (host: string): string => `http://${host}:${port}`;
  const secretOf = (name: string): string => `secret-of-the-service-${name}`;

  const baseOf = ({ name, host }: OAuthAppService): string =>
    host === undefined ? `${hub?.url}services/${name}` : `${originOf(host)}/${name}`;
  const callbackOf = (service: OAuthAppService): string =>
    `${baseOf(service)}/${service.host === undefined ? 'oauth_callback' : 'cb'}`;

  function serviceOf(name: string): OAuthAppService {
    const service = services.find((one) => one.name === name);
    if (service === undefined) throw new Error(`there is no service ${name}`);
    return service;
  }

  function authorizeUrl(name: string, scope?: string): string {
    const parameters = new URLSearchParams({
      response_type: 'code',
      client_id: `service-${name}`,
      redirect_uri: callbackOf(serviceOf(name)),
      state: 'state-of-the-app',
      ...(scope !== undefined && { scope }),
    });
    return `${hub?.url}hub/api/oauth2/authorize?${parameters}`;
  }

  /** `/<service>/login`, `/<service>/cb`, `/<service>/opener` and `/<service>/arrived`. */
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://app.invalid');
    const [name, page] = pathname.replace('/services/', '/').slice(1).split('/');
    const service = services.find((one) => one.name === name);
    if (service === undefined || hub === undefined) {
      response.writeHead(404).end();
      return;
    }
    const redirect = (url: string) => response.writeHead(302, { location: url }).end();
    const show = (markup: string) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<!doctype html><title>${name}</title>${markup}`);
    switch (page ?? '') {
      case 'login': {
        return void redirect(authorizeUrl(service.name, searchParams.get('scope') ?? undefined));
      }
      case 'cb':
      case 'oauth_callback': {
        referers.push(request.headers.referer ?? '');
        const outcome = await outcomeOf(service, searchParams);
        const { thenHost } = service;
        if (thenHost !== undefined)
          return void redirect(
            `${originOf(thenHost)}/${name}/arrived?${new URLSearchParams({ outcome })}`,
          );
        return void show(messagePage(outcome));
      }
      case 'arrived':
        return void show(messagePage(searchParams.get('outcome') ?? ''));
      case 'opener':
        return void show(openerPage(searchParams.get('opens') ?? ''));
      default:
        response.writeHead(404).end();
    }
  }

  async function outcomeOf(service: OAuthAppService, answer: URLSearchParams): Promise<string> {
    if (answer.get('state') !== 'state-of-the-app') return 'wrong state';
    const error = answer.get('error');
    if (error !== null) return `${service.name}: ${error}`;
    const exchanged = await fetch(`${hub?.apiUrl}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code: answer.get('code') ?? '',
        redirect_uri: callbackOf(service),
        client_id: `service-${service.name}`,
        client_secret: secretOf(service.name),
      }),
    });
    const { access_token: token } = (await exchanged.json()) as { access_token: string };
    const user = await fetch(`${hub?.apiUrl}/user`, {
      headers: { authorization: `token ${token}` },
    });
    return `${service.name}: ${((await user.json()) as { name: string }).name}`;
  }

  return {
    services: services.map((service) => ({
      name: service.name,
      api_token: secretOf(service.name),
      url: originOf('127.0.0.1'),
      ...(service.noConfirm === true && { oauth_no_confirm: true }),
      ...(service.host !== undefined && { oauth_redirect_uri: callbackOf(service) }),
    })),
    connect(connected) {
      hub = connected;
    },
    loginUrl: (name, scope) =>
      `${baseOf(serviceOf(name))}/login${scope === undefined ? '' : `?scope=${scope}`}`,
    authorizeUrl,
    openerUrl: (name, opens) =>
      `${baseOf(serviceOf(name))}/opener?opens=${encodeURIComponent(opens)}`,
    referers,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Says how a login ended, also to the page that opened it. */
const messagePage = (outcome: string): string => `<p id="outcome">${outcome}</p>
<script>
document.title = 'opener: ' + (window.opener !== null);
window.opener?.postMessage(${JSON.stringify(outcome)}, '*');
</script>`;

/** Opens a page in a popup, and says what it sees of it. */
const openerPage = (opens: string): string => `<button>Open</button><p id="told"></p>
<script>
document.querySelector('button').onclick = () => { window.popup = window.open(${JSON.stringify(opens)}, 'popup', 'width=500,height=600'); };
window.onmessage = ({ data }) => { document.getElementById('told').textContent = data + ', closed: ' + window.popup.closed; };
</script>`;
