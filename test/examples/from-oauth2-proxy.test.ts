import { parse } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { useCommandLine } from '../support/command-line.ts';
import { documentedBlock, documentedBlocks, withoutTls } from '../support/documented-blocks.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { passProvider, startOidcProvider } from '../support/oidc-provider.ts';
import { requires } from '../support/requires.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, type TestHubConfig } from '../support/test-hub.ts';
import { nginxOf, startConfigured } from '../support/web-servers.ts';

const page = 'docs/how-to/from-oauth2-proxy.md';
const secret = 'the secret of the client apps';
const environment = { HUB_CLIENT_SECRET: secret };

type Headers = Readonly<Record<string, string>>;
type Routes = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

interface PageConfig extends TestHubConfig {
  readonly Hub: Readonly<Record<string, unknown>>;
  readonly OIDCAuthenticator?: object;
  readonly Proxy: { readonly extra_routes: Routes };
}

/** The page's hub, its app, and the same app behind nginx, which asks the hub as it has asked oauth2-proxy. */
async function createWorld() {
  const stack = new AsyncDisposableStack();
  const app = stack.use(
    await startUpstream(({ headers }, res) => void res.end(JSON.stringify(headers))),
  );
  const [port, hubPort] = [await freePort(), await freePort()];
  const hubUrl = `http://hub.localhost:${port}/`;
  const client = { client_id: 'apps', client_secret: secret };
  const provider = stack.use(await startOidcProvider({ hubUrl, client }));
  await provider.setAccount('eve', { claims: { email: 'eve@example.com' } });

  const here = (block = '') =>
    block
      .replaceAll('https://id.example.org/', provider.issuer)
      .replaceAll('https://hub.example.org/', hubUrl)
      .replaceAll('http://127.0.0.1:3000', app.url)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${hubPort}`)
      .replaceAll('grafana.example.org', 'grafana.localhost')
      .replaceAll('wiki.example.org', 'wiki.localhost');
  const [whole, asked] = documentedBlocks(page, 'jsonc').map(
    (block) => parse(here(block)) as PageConfig,
  );
  if (whole === undefined || asked === undefined) throw new Error(`${page} has other blocks`);
  const hub = stack.use(
    await createTestHub(
      {
        ...whole,
        Hub: { ...whole.Hub, ...asked.Hub, bind_url: `http://127.0.0.1:${hubPort}/` },
        Authenticator: { allow_all: false },
        OIDCAuthenticator: { ...whole.OIDCAuthenticator, allow_insecure_requests: true },
        Proxy: { extra_routes: { ...whole.Proxy.extra_routes, ...asked.Proxy.extra_routes } },
      },
      { environment },
    ),
  );
  await untilState(hub, 'grafana', 'ready');

  // What oauth2-proxy's pages have at the end of `location /` stands where the hub's names stood.
  const lines = documentedBlock(page, 'nginx');
  const forwardAuth = withoutTls(documentedBlock('docs/how-to/forward-auth.md', 'nginx'), port)
    .replace(/^ *(auth_request_set|proxy_set_header X-Hub).*\n/gm, '')
    .replace('    proxy_set_header Host', () => `${lines}    proxy_set_header Host`)
    .replaceAll('grafana.example.org', 'wiki.localhost');
  const passOn = `server {
    listen 127.0.0.1:${port}; server_name hub.localhost grafana.localhost;
    location / { proxy_pass http://hub; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $remote_addr; } }`;
  stack.use(
    await startConfigured('nginx', port, (folder) =>
      nginxOf(folder, `${here(forwardAuth)}\n${passOn}`),
    ),
  );
  return {
    hubUrl,
    urlOf: (app: string) => `http://${app}.localhost:${port}/`,
    async logIn(name: string, url: string) {
      const browser = new FakeBrowser();
      let answer = await browser.request(url);
      while (answer.headers.location?.startsWith(provider.issuer) === false) {
        answer = await browser.follow(answer);
      }
      const back = await passProvider(browser, answer.headers.location ?? '', name);
      return {
        browser,
        answer: await browser.open(new URL(back.headers.location ?? '', url).href),
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

describe('the page for those who come from oauth2-proxy', () => {
  const { writeConfig, hub } = useCommandLine();

  test('shows configurations without a problem', async () => {
    for (const block of documentedBlocks(page, 'jsonc')) {
      writeConfig(parse(block) as object);
      const { exitCode, stdout, stderr } = await hub('check', { env: environment });
      expect([exitCode, stderr]).toEqual([0, '']);
      expect(stdout).not.toContain('Proxy.');
    }
  });

  test.skipIf(!requires('nginx'))('does the same for its apps', async () => {
    await using world = await createWorld();

    for (const [app, names] of [
      ['grafana', ['x-webauth-user', 'x-webauth-email']],
      ['wiki', ['x-user', 'x-email']],
    ] as const) {
      const url = world.urlOf(app);
      const [user = '', email = ''] = names;
      // A stranger is sent to log in, programs are told to, and nobody is who they say they are.
      const forged: Headers = {
        [user]: 'root',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': `hub.localhost`,
        'x-forwarded-uri': '/api/health',
      };
      const visitor = new FakeBrowser();
      const sent = await visitor.request(`${url}d/1`, { headers: forged });
      expect([sent.status, sent.headers.location]).toEqual([302, expect.stringContaining('/hub/')]);
      const program = await visitor.request(`${url}d/1`, {
        headers: { accept: 'application/json', 'sec-fetch-mode': 'cors' },
      });
      expect(program.status).toBe(401);

      const { browser, answer } = await world.logIn('ada', `${url}d/1`);
      expect(JSON.parse(answer.body)).toMatchObject({ [user]: 'ada', [email]: 'ada@example.org' });
      const again = await browser.request(`${url}d/1`, { headers: { [user]: 'root' } });
      expect((JSON.parse(again.body) as Headers)[user]).toBe('ada');

      // `/oauth2/userinfo` and `/oauth2/sign_out`.
      const me = await browser.request(`${world.hubUrl}hub/api/user`);
      expect(JSON.parse(me.body)).toMatchObject({ name: 'ada' });
      await browser.request(`${world.hubUrl}hub/logout`);
      expect((await browser.request(`${url}d/1`)).status).toBe(302);

      // `--email-domain`.
      expect((await world.logIn('eve', url)).answer.status).toBe(403);
    }

    // `--skip-auth-route` and `--ping-path`.
    const anybody = new FakeBrowser();
    const health = `${world.urlOf('grafana')}api/health`;
    const open = await anybody.request(health, { headers: { 'x-webauth-user': 'root' } });
    expect(open.status).toBe(200);
    expect(JSON.parse(open.body)).not.toHaveProperty('x-webauth-user', 'root');
    expect((await anybody.request(health, { method: 'POST' })).status).toBe(401);
    expect((await anybody.request(`${world.hubUrl}hub/health`)).status).toBe(200);
  });
});
