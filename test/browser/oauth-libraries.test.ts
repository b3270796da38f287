import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { createPasskeyHub } from '../support/passkey-hub.ts';
import { testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { projectDirectory, usersOpenServices } from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';

const packages = join(projectDirectory, 'foreign', 'node_modules');
const packageFolder = (...path: readonly string[]) => join(packages, ...path);
const foreign = createRequire(join(packages, 'any'));
const secretOf = (name: string) => `secret-of-the-service-${name}`;

/** The parts of Express that the apps use, of which no types are installed. */
type Handler = (
  req: IncomingMessage & { readonly body: Uint8Array<ArrayBuffer> },
  res: ServerResponse & {
    send(body: string): void;
    status(code: number): { send(body: string): void };
  },
) => unknown;
type OpenidRequest = Parameters<Handler>[0] & {
  readonly oidc?: { readonly user?: { readonly preferred_username: string } };
};
type AddHandlers = (path: string, ...handlers: readonly unknown[]) => void;
interface Express {
  (): ExpressApp;
  raw(options: { readonly type: () => boolean }): unknown;
  static(folder: string): unknown;
}
interface ExpressApp extends Record<'get' | 'post' | 'use', AddHandlers> {
  listen(port: number, host: string): Server;
}

const outcomePage = (outcome: string) => `<!doctype html><p id="outcome">${outcome}</p>`;

describe.runIf(hasChromium() && requires('oauth-libraries'))('in Chromium, a login by', () => {
  let hub: TestHub;
  let browser: Browser;
  let server: Server;
  let originOf: (host: string) => string;

  beforeAll(async () => {
    const express: Express = foreign('express');
    const app = express();
    server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    originOf = (host) => `http://${host}:${port}`;
    const [otherHost, otherPort] = [originOf('app.localhost'), originOf('localhost')];
    const callbacks = {
      swagger: `${otherHost}/swagger/oauth2-redirect.html`,
      popup: `${otherHost}/popup/cb`,
      redirect: `${otherHost}/redirect/cb`,
      authjs: `${otherHost}/auth/callback/hub`,
      express: `${otherHost}/express/callback`,
      passport: `${otherPort}/passport/cb`,
      'passport-openid': `${otherPort}/passport-openid/cb`,
    };
    hub = await createPasskeyHub(['ada', 'bob'], {
      Hub: {
        load_roles: usersOpenServices,
        services: Object.entries(callbacks).map(([name, oauth_redirect_uri]) => ({
          name,
          url: originOf('127.0.0.1'),
          oauth_redirect_uri,
          ...(['popup', 'redirect'].includes(name)
            ? { oauth_public: true }
            : { api_token: secretOf(name) }),
        })),
      },
    });
    const metadata = await fetch(`${hub.url}.well-known/oauth-authorization-server`);
    const endpoints = (await metadata.json()) as Endpoints;
    addEndpoints(app, express);
    addSwaggerUi(app, express, endpoints);
    for (const name of ['popup', 'redirect'] as const)
      addOidcClient(app, { name, callback: callbacks[name], issuer: endpoints.issuer });
    app.use('/oidc', express.static(packageFolder('oidc-client-ts', 'dist/browser')));
    await addAuthJs(app, endpoints);
    addExpressOpenid(app, endpoints);
    addPassport(app, callbacks, endpoints);
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
    server?.close();
    server?.closeAllConnections();
  });

  interface Endpoints {
    readonly issuer: string;
    readonly authorization_endpoint: string;
    readonly token_endpoint: string;
    readonly userinfo_endpoint: string;
  }

  /** The API lets no page of another origin read its answers: an app in a browser asks its own server. */
  function addEndpoints(app: ExpressApp, express: Express): void {
    const pass = async (path: string, ...[req, res]: Parameters<Handler>): Promise<void> => {
      const { authorization, 'content-type': type } = req.headers;
      const answer = await fetch(`${hub.apiUrl}/${path}`, {
        method: req.method ?? 'GET',
        headers: { ...(authorization && { authorization }), ...(type && { 'content-type': type }) },
        ...(req.method === 'POST' && { body: req.body }),
      });
      res.setHeader('content-type', 'application/json');
      res.status(answer.status).send(await answer.text());
    };
    const whole = express.raw({ type: () => true });
    app.post('/token', whole, ((req, res) => pass('oauth2/token', req, res)) satisfies Handler);
    app.get('/me', ((req, res) => pass('user', req, res)) satisfies Handler);
  }

  function addSwaggerUi(
    app: ExpressApp,
    express: Express,
    { authorization_endpoint }: Endpoints,
  ): void {
    const flow = {
      authorizationUrl: authorization_endpoint,
      tokenUrl: `${originOf('app.localhost')}/token`,
      scopes: {},
    };
    const spec = {
      openapi: '3.1.0',
      info: { title: 'App', version: '1' },
      paths: {
        '/me': { get: { responses: { 200: { description: 'You.' } }, security: [{ hub: [] }] } },
      },
      components: {
        securitySchemes: { hub: { type: 'oauth2', flows: { authorizationCode: flow } } },
      },
    };
    const client = { clientId: 'service-swagger', clientSecret: secretOf('swagger') };
    const start = `window.ui = SwaggerUIBundle({
      spec: ${JSON.stringify(spec)}, dom_id: '#swagger-ui',
      oauth2RedirectUrl: location.origin + '/swagger/oauth2-redirect.html',
    });
    window.ui.initOAuth(${JSON.stringify({ ...client, usePkceWithAuthorizationCodeGrant: true })});`;
    app.get('/swagger/swagger-initializer.js', ((_req, res) => {
      res.setHeader('content-type', 'text/javascript');
      res.send(start);
    }) satisfies Handler);
    app.use('/swagger', express.static(packageFolder('swagger-ui-dist')));
  }

  /** A public client: the page itself asks the hub's endpoints. */
  function addOidcClient(
    app: ExpressApp,
    { name, callback, issuer }: { name: 'popup' | 'redirect'; callback: string; issuer: string },
  ): void {
    const settings = {
      authority: issuer,
      client_id: `service-${name}`,
      redirect_uri: callback,
      scope: 'openid profile',
    };
    const page =
      (run: string): Handler =>
      (_req, res) =>
        res.send(`<!doctype html><button>Log in</button><p id="outcome"></p>
<script src="/oidc/oidc-client-ts.min.js"></script><script>
const manager = new oidc.UserManager(${JSON.stringify(settings)});
const say = (outcome) => { document.getElementById('outcome').textContent = outcome; };
const show = async ({ profile }) =>
  say((await manager.getUser()).access_token && profile.preferred_username);
${run}</script>`);
    const begin = {
      popup: 'manager.signinPopup().then(show)',
      redirect: 'manager.signinRedirect()',
    };
    const end = {
      popup: 'manager.signinPopupCallback()',
      redirect: 'manager.signinRedirectCallback().then(show)',
    };
    const failing = '.catch((error) => say(error.message))';
    app.get(
      `/${name}/`,
      page(`document.querySelector('button').onclick = () => ${begin[name]}${failing};`),
    );
    app.get(`/${name}/cb`, page(end[name] + failing));
  }

  async function addAuthJs(app: ExpressApp, endpoints: Endpoints): Promise<void> {
    const { ExpressAuth, getSession } = await import(packageFolder('@auth/express/index.js'));
    const config = {
      secret: 'keys of the sessions of this app',
      trustHost: true,
      providers: [
        {
          id: 'hub',
          name: 'the hub',
          type: 'oidc',
          issuer: endpoints.issuer,
          clientId: 'service-authjs',
          clientSecret: secretOf('authjs'),
          checks: ['pkce', 'state', 'nonce'],
        },
      ],
    };
    app.use('/auth', ExpressAuth(config));
    app.get('/', (async (req, res) => {
      const session = await getSession(req, config);
      res.send(outcomePage(session?.user.name ?? 'nobody'));
    }) satisfies Handler);
  }

  function addExpressOpenid(app: ExpressApp, { issuer }: Endpoints): void {
    const { auth } = foreign('express-openid-connect');
    const config = {
      baseURL: `${originOf('app.localhost')}/express`,
      issuerBaseURL: issuer,
      clientID: 'service-express',
      clientSecret: secretOf('express'),
      secret: 'keys of the sessions of this app',
      authorizationParams: { response_type: 'code' },
      authRequired: false,
    };
    app.use('/express', auth(config));
    app.get('/express', ((req: OpenidRequest, res) =>
      res.send(outcomePage(req.oidc?.user?.preferred_username ?? 'nobody'))) satisfies Handler);
  }

  /** Once as a plain client of OAuth, and once as one of OpenID Connect, which asks UserInfo. */
  function addPassport(
    app: ExpressApp,
    callbacks: Readonly<Record<'passport' | 'passport-openid', string>>,
    endpoints: Endpoints,
  ): void {
    type Done = (error: unknown, user?: unknown) => void;
    const { Passport } = foreign('passport');
    const oauth = foreign('passport-oauth2');
    const openid = foreign('passport-openidconnect');
    const options = (name: keyof typeof callbacks) => ({
      issuer: endpoints.issuer,
      authorizationURL: endpoints.authorization_endpoint,
      tokenURL: endpoints.token_endpoint,
      userInfoURL: endpoints.userinfo_endpoint,
      clientID: `service-${name}`,
      clientSecret: secretOf(name),
      callbackURL: callbacks[name],
      scope: name === 'passport' ? 'identify' : 'profile',
      skipUserProfile: name === 'passport',
      state: true,
      pkce: true,
      nonce: true,
    });
    const askHub = (token: string, _refresh: unknown, _profile: unknown, done: Done): void => {
      fetch(`${hub.apiUrl}/user`, { headers: { authorization: `Bearer ${token}` } })
        .then((answer) => answer.json())
        .then((user) => done(null, user), done);
    };
    const useProfile = (_issuer: string, { username }: { username: string }, done: Done): void =>
      done(null, { name: username });
    const strategies = {
      passport: new oauth.Strategy(options('passport'), askHub),
      'passport-openid': new openid.Strategy(options('passport-openid'), useProfile),
    };
    const session = foreign('express-session');
    const sessions = session({ secret: 'one', resave: false, saveUninitialized: false });
    for (const [name, strategy] of Object.entries(strategies)) {
      const passport = new Passport();
      passport.use(name, strategy);
      app.use(`/${name}`, sessions);
      app.get(`/${name}/`, passport.authenticate(name, { session: false }));
      app.get(`/${name}/cb`, (...[req, res]: Parameters<Handler>) =>
        passport.authenticate(
          name,
          (error: Error | null, user: { name: string } | false, info?: { message: string }) =>
            res.send(outcomePage(user ? user.name : String(error?.message ?? info?.message))),
        )(req, res),
      );
    }
  }

  async function logIn(page: Page, userName: string, decision?: 'Allow' | 'Deny'): Promise<void> {
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill(testPassword);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    if (decision !== undefined) await page.getByRole('button', { name: decision }).click();
  }

  /** Opens what a click on a button opens in a popup. */
  async function popupOf(page: Page, selector: string): Promise<Page> {
    const opened = page.waitForEvent('popup');
    await page.locator(selector).click();
    return opened;
  }

  const inPopup = async (page: Page): Promise<Page> => {
    await page.goto(`${originOf('app.localhost')}/popup/`);
    return popupOf(page, 'button');
  };
  const bySwagger = async (page: Page): Promise<Page> => {
    await page.goto(`${originOf('app.localhost')}/swagger/`);
    await page.locator('.btn.authorize').click();
    return popupOf(page, '.auth-btn-wrapper .authorize');
  };
  const libraries = [
    { library: 'oidc-client-ts in a popup', begin: inPopup },
    {
      library: 'oidc-client-ts by redirect',
      async begin(page: Page) {
        await page.goto(`${originOf('app.localhost')}/redirect/`);
        await page.getByRole('button').click();
        return page;
      },
    },
    {
      library: 'Auth.js',
      async begin(page: Page) {
        await page.goto(`${originOf('app.localhost')}/auth/signin`);
        await page.getByRole('button', { name: 'Sign in with the hub' }).click();
        return page;
      },
      words: 'Try signing in with a different account.',
    },
    {
      library: 'express-openid-connect',
      async begin(page: Page) {
        await page.goto(`${originOf('app.localhost')}/express/login`);
        return page;
      },
      words: 'authorization response from the server is an error',
    },
    ...['passport', 'passport-openid'].map((name) => ({
      library: name,
      async begin(page: Page) {
        await page.goto(`${originOf('localhost')}/${name}/`);
        return page;
      },
    })),
    {
      library: "Swagger UI's Authorize",
      begin: bySwagger,
      async seesUser(page: Page, name: string) {
        await page.locator('.btn-done').click();
        await page.locator('.opblock-summary-control').click();
        await page.getByRole('button', { name: 'Try it out' }).click();
        await page.getByRole('button', { name: 'Execute' }).click();
        await page.locator('.live-responses-table', { hasText: `"name": "${name}"` }).waitFor();
      },
    },
  ];

  describe.each(libraries)('$library', ({ begin, seesUser, words }) => {
    async function expectUser(page: Page, name: string): Promise<void> {
      if (seesUser === undefined) await page.locator('#outcome', { hasText: name }).waitFor();
      else await seesUser(page, name);
    }

    test('ends with the user, with and without the question for consent', async () => {
      for (const decision of ['Allow', undefined] as const) {
        const { page, complaints } = await openProfile(browser);
        await logIn(await begin(page), 'ada', decision);
        await expectUser(page, 'ada');
        expect(complaints).toEqual([]);
      }
    });

    test('says in words that it was refused', async () => {
      const { page } = await openProfile(browser);
      await logIn(await begin(page), 'bob', 'Deny');
      await page
        .getByText(words ?? 'The user denied the request.')
        .first()
        .waitFor();
    });
  });
});
