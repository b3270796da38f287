import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { pino } from 'pino';
import { createClientAssertionVerifier } from '../../src/identity/oauth/clients/client-assertion.ts';
import { createClientAuthentication } from '../../src/identity/oauth/clients/client-authentication.ts';
import {
  createClientDocuments,
  type DocumentHosts,
} from '../../src/identity/oauth/clients/client-documents.ts';
import {
  createClientRegistry,
  type ServiceClientSource,
} from '../../src/identity/oauth/clients/client-registry.ts';
import { createClientSecretVerifier } from '../../src/identity/oauth/clients/client-secret.ts';
import { createFailureLimit } from '../../src/identity/oauth/clients/failure-limit.ts';
import { createAuthorizationEndpoint } from '../../src/identity/oauth/endpoints/authorization-endpoint.ts';
import type { ConsentView } from '../../src/identity/oauth/endpoints/consent-view.ts';
import { createDeviceAuthorizationEndpoint } from '../../src/identity/oauth/endpoints/device-authorization-endpoint.ts';
import { createDeviceVerification } from '../../src/identity/oauth/endpoints/device-verification.ts';
import { createIntrospectionEndpoint } from '../../src/identity/oauth/endpoints/introspection-endpoint.ts';
import {
  assertionAudiences,
  createKeySetEndpoint,
  createMetadataEndpoint,
  issuerOf,
  metadataPaths,
} from '../../src/identity/oauth/endpoints/metadata-endpoint.ts';
import { createKeepOpen } from '../../src/identity/oauth/endpoints/open-requests.ts';
import {
  createPushEndpoint,
  createPushedRequests,
} from '../../src/identity/oauth/endpoints/pushed-requests.ts';
import { createRevocationEndpoint } from '../../src/identity/oauth/endpoints/revocation-endpoint.ts';
import { createTokenEndpoint } from '../../src/identity/oauth/endpoints/token-endpoint.ts';
import { createUserInfoEndpoint } from '../../src/identity/oauth/endpoints/userinfo-endpoint.ts';
import { createClientCredentialsGrant } from '../../src/identity/oauth/grants/client-credentials-grant.ts';
import { createCodeExchange } from '../../src/identity/oauth/grants/code-exchange.ts';
import {
  createDeviceGrant,
  createDeviceRequests,
} from '../../src/identity/oauth/grants/device-grant.ts';
import { createRefreshGrant } from '../../src/identity/oauth/grants/refresh-grant.ts';
import { createTokenExchangeGrant } from '../../src/identity/oauth/grants/token-exchange-grant.ts';
import { createSigningKeyStore } from '../../src/identity/oauth/keys/signing-key-store.ts';
import { createSigningKeys } from '../../src/identity/oauth/keys/signing-keys.ts';
import { createClientLoginStore } from '../../src/identity/oauth/logout/client-login-store.ts';
import { startLogoutDeliveries } from '../../src/identity/oauth/logout/logout-deliveries.ts';
import { OAuthError } from '../../src/identity/oauth/oauth-error.ts';
import { createUserClaims } from '../../src/identity/oauth/openid/claims.ts';
import { createIdTokens, createSessionIdOf } from '../../src/identity/oauth/openid/id-token.ts';
import { createAccessTokenStore } from '../../src/identity/oauth/tokens/access-token-store.ts';
import { createAuthorizationCodeStore } from '../../src/identity/oauth/tokens/authorization-code-store.ts';
import { createImportedTokenStore } from '../../src/identity/oauth/tokens/imported-token-store.ts';
import { createRefreshTokenStore } from '../../src/identity/oauth/tokens/refresh-token-store.ts';
import { createTokenIssuer } from '../../src/identity/oauth/tokens/token-issuer.ts';
import {
  bearerChallenge,
  createServiceTokens,
  createTokenVerifier,
  readPresentedToken,
} from '../../src/identity/oauth/tokens/token-verifier.ts';
import { createUseRecorder } from '../../src/identity/oauth/tokens/use-recorder.ts';
import { createAuthorizer } from '../../src/identity/rbac/authorizer.ts';
import { defaultRoles } from '../../src/identity/rbac/role.ts';
import { createRoleStore } from '../../src/identity/rbac/role-store.ts';
import { createScopeCatalogue } from '../../src/identity/rbac/scope-definitions.ts';
import { createLoginSessionStore } from '../../src/identity/sessions/login-session-store.ts';
import { createGroupStore } from '../../src/identity/users/group-store.ts';
import { createUserInfoStore } from '../../src/identity/users/user-info-store.ts';
import { createUserStore, type User } from '../../src/identity/users/user-store.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { createKeyedHash } from '../../src/platform/crypto/hash.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import { HubError } from '../../src/platform/errors.ts';
import { createErrorAnswers, errorMiddleware } from '../../src/platform/http/error-answers.ts';
import { createClientAddressReader } from '../../src/platform/http/request-address.ts';
import { securityHeaders } from '../../src/platform/http/security-headers.ts';
import { authorizationToken } from '../../src/platform/protocol/token-parameter.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { createFindResource } from '../../src/traffic/gateway/find-resource.ts';
import { createRouteTable } from '../../src/traffic/proxy/route-table.ts';
import { createShareStore } from '../../src/workloads/sharing/share-store.ts';
import { memorySpace } from '../support/memory-space.ts';

const log = pino({ level: 'silent' });

/** A service the harness registers; left out, its scopes and redirect URI are the usual ones. */
export interface HarnessService extends Partial<ServiceClientSource> {
  readonly name: string;
  readonly secret: string;
}

export interface HarnessOptions {
  /** Path of the public URL, with a slash at both ends. */
  readonly basePath?: string;
  readonly services?: readonly HarnessService[];
  readonly tokenLifetimeSeconds?: number;
  readonly documentHosts?: DocumentHosts;
}

/** What the consent page of the harness shows: the view as JSON, and the token its form needs. */
export interface ShownConsent {
  readonly view: ConsentView;
  readonly csrf: string;
}

/** A random verifier and its S256 challenge. */
export function pkcePair(): { readonly verifier: string; readonly challenge: string } {
  const verifier = randomUUID() + randomUUID();
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  return { verifier, challenge };
}

/** The usual service: named `wiki`, and every user may reach it. */
export const wiki: HarnessService = { name: 'wiki', secret: 'wiki-secret-0123456789' };

/** A second one, for what belongs to another client. */
export const forum: HarnessService = { name: 'forum', secret: 'forum-secret-0123456789' };

/**
 * Starts the authorization server of the hub on a free port: the real endpoints, stores and scopes.
 * Only the login and the look of the consent page are stand-ins.
 */
export async function startAuthorizationServer(options: HarnessOptions = {}) {
  const { basePath = '/', services = [wiki, forum], tokenLifetimeSeconds = 1_209_600 } = options;
  await using parts = new AsyncDisposableStack();

  const secrets = [new Secret('0123456789abcdef0123456789abcdef')];
  let skippedMs = 0;
  const now = () => Date.now() + skippedMs;

  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  parts.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const publicUrl = new URL(basePath, origin);
  const issuer = issuerOf(publicUrl);

  const opened = parts.use(await openDatabase('sqlite::memory:', { directory: '.', log }));
  const database = { ...opened, now };
  const users = createUserStore(database);
  const groups = createGroupStore(database);
  const roles = createRoleStore(database);
  for (const role of Object.values(defaultRoles)) await roles.apply({ save: [role] });
  await roles.apply({
    save: [
      {
        ...defaultRoles.user,
        scopes: ['self', ...services.map(({ name }) => `access:services!service=${name}`)],
      },
    ],
  });
  const catalogue = createScopeCatalogue();
  const authorizer = createAuthorizer({
    catalogue,
    users,
    groups,
    roles,
    shares: createShareStore(database),
    services: () => services.map(({ name }) => ({ name, admin: false })),
    database,
    log,
  });

  const accessTokens = createAccessTokenStore({ database, now });
  const importedTokens = createImportedTokenStore(database);
  const authorizationCodes = createAuthorizationCodeStore({ database, now });
  const serviceTokens = createServiceTokens();
  for (const { name, secret } of services) serviceTokens.set(name, secret);
  const limit = (limit: number) => createFailureLimit({ counts: memorySpace(), now, limit });
  const clientDocuments = createClientDocuments({
    hosts: options.documentHosts ?? 'public',
    hubUrl: publicUrl,
    documents: memorySpace(),
    reads: limit(5),
    log,
  });
  const clients = createClientRegistry({
    agents: clientDocuments,
    services: () =>
      services.map(({ secret: _, ...service }) => ({
        clientId: `service-${service.name}`,
        redirectUris: [`${basePath}services/${service.name}/oauth_callback`],
        isPublic: false,
        allowedScopes: [],
        skipsConsent: false,
        ...service,
      })),
    servers: {
      isUser: async (userName) => (await users.findByName(userName)) !== undefined,
      async find(userName, serverName) {
        const row = await database.kysely
          .selectFrom('servers')
          .innerJoin('users', 'users.id', 'servers.user_id')
          .select('servers.id')
          .where('users.name', '=', userName)
          .where('servers.name', '=', serverName)
          .executeTakeFirst();
        const path = [userName, serverName].filter((part) => part !== '').map(encodeURIComponent);
        return row && { id: row.id, prefix: `${basePath}user/${path.join('/')}/` };
      },
      allowedScopes: [],
    },
    originOf: () => origin,
  });
  const clientAuthentication = createClientAuthentication({
    clients,
    verifyClientAssertion: createClientAssertionVerifier({
      audiences: assertionAudiences(publicUrl),
      used: memorySpace<true>(),
      now,
      log,
    }),
    verifyClientSecret: createClientSecretVerifier({ serviceTokens, accessTokens, importedTokens }),
    failureLimit: createFailureLimit({ counts: memorySpace(), now }),
  });
  const useRecorder = parts.use(createUseRecorder({ accessTokens, log, now }));
  const tokenVerifier = parts.use(
    createTokenVerifier({
      accessTokens,
      importedTokens,
      serviceTokens,
      users,
      clients,
      authorizer,
      database,
      useRecorder,
    }),
  );
  const signingKeys = createSigningKeys({
    store: createSigningKeyStore(database, { sealer: createSealer(secrets, 'signing-key') }),
    database,
    days: 90,
    log,
  });
  const userInfo = createUserInfoStore(database);
  const userClaims = createUserClaims({ userInfo, groups });
  const sessionIdOf = createSessionIdOf(createKeyedHash(secrets, 'openid-session'));
  const routes = createRouteTable();
  for (const { name } of services) {
    const owner = { kind: 'service', name } as const;
    const prefix = `${basePath}services/${name}/`;
    routes.add({ prefix, target: 'http://127.0.0.1:1', access: 'gateway', owner });
  }
  const findResource = createFindResource({
    routes,
    origins: { of: () => origin },
    basePath,
    serverStore: {
      find: async (userName, serverName) =>
        database.kysely
          .selectFrom('servers')
          .innerJoin('users', 'users.id', 'servers.user_id')
          .select('servers.id')
          .where('users.name', '=', userName)
          .where('servers.name', '=', serverName)
          .executeTakeFirst(),
    },
  });
  const exchangeCode = createCodeExchange({
    authorizationCodes,
    issueIdToken: createIdTokens({
      signingKeys,
      userClaims,
      sessionIdOf,
      issuer,
      now,
    }),
    tokenLifetimeSeconds,
    log,
    now,
  });
  const logoutOutcomes: string[] = [];
  const startDeliveries = (known: Pick<typeof clients, 'find'> = clients) =>
    startLogoutDeliveries({
      clientLogins: createClientLoginStore(database),
      clients: known,
      signingKeys,
      sessionIdOf,
      issuer,
      database,
      metrics: { countLogoutDelivery: (outcome) => logoutOutcomes.push(outcome) },
      log,
    });
  const refreshTokens = createRefreshTokenStore({ database, now });
  const deviceRequests = createDeviceRequests({ space: memorySpace(), now });
  const answerGrants = {
    'urn:ietf:params:oauth:grant-type:device_code': createDeviceGrant({
      deviceRequests,
      exchangeCode,
    }),
    'urn:ietf:params:oauth:grant-type:token-exchange': createTokenExchangeGrant({
      tokenVerifier,
      accessTokens,
      clients,
      authorizer,
      now,
    }),
    client_credentials: createClientCredentialsGrant({ accessTokens, authorizer, now }),
    refresh_token: createRefreshGrant({ refreshTokens, users, authorizer, log, now }),
  };
  const tokenIssuer = createTokenIssuer({ accessTokens, authorizer, now });

  const loginOf = async (ctx: Context) => {
    const sessionId = ctx.cookies.get('login') ?? '';
    const row = await database.kysely
      .selectFrom('login_sessions')
      .select(['user_id', 'created_at', 'acr'])
      .where('session_id', '=', sessionId)
      .executeTakeFirst();
    const user = row && (await users.findById(row.user_id));
    return (
      user && {
        user,
        sessionId,
        authenticatedAt: new Date(row.created_at),
        acr: row.acr ?? undefined,
      }
    );
  };

  const countRefusal = () => undefined;
  const findRole = (name: string) => roles.findByName(name);
  const keepOpen = createKeepOpen({
    ofNetwork: limit(5),
    ofClient: limit(8),
    clientAddress: createClientAddressReader([]),
    networkOf: (address) => address,
  });
  const pushedRequests = createPushedRequests({ space: memorySpace() });
  const deviceVerification = createDeviceVerification({
    deviceRequests,
    clients,
    authorizationCodes,
    authorizer,
    findRole,
    userCodeFailures: limit(3),
    titleOfService: () => undefined,
    log,
  });
  const deviceAuthorizationEndpoint = createDeviceAuthorizationEndpoint({
    clientAuthentication,
    deviceRequests,
    findResource,
    keepOpen,
    authorizer,
    findRole,
    verificationUri: `${issuer}/hub/device`,
    countRefusal,
  });
  const pushEndpoint = createPushEndpoint({
    clientAuthentication,
    pushedRequests,
    keepOpen,
    clients,
    clientDocuments,
    findResource,
    issuer,
    signingKeys,
    authorizer,
    findRole,
    countRefusal,
  });
  const authorizationEndpoint = createAuthorizationEndpoint({
    pushedRequests,
    clients,
    clientDocuments,
    findResource,
    issuer,
    authorizationCodes,
    accessTokens,
    authorizer,
    findRole,
    currentLogin: loginOf,
    redirectToLogin(ctx, url) {
      ctx.redirect(`${basePath}hub/login?next=${encodeURIComponent(url)}`);
    },
    async confirmLogin(ctx, url) {
      ctx.body = { confirm: url };
    },
    signingKeys,
    now,
    titleOfService: () => undefined,
    hasOpened: () => false,
    showConsent(ctx, view) {
      ctx.body = { view, csrf: `csrf-${ctx.cookies.get('login')}` };
    },
    requireCsrf(ctx, form) {
      if (form.get('csrf') === `csrf-${ctx.cookies.get('login')}`) return;
      throw new HubError('csrf_failed', 'This form is no longer valid.');
    },
    countRefusal,
    log,
  });
  const introspect = createIntrospectionEndpoint({
    clientAuthentication,
    tokenVerifier,
    authorizer,
    issuer,
    addressOf: (target) =>
      target.kind === 'service'
        ? `${issuer}/services/${target.name}/`
        : `${issuer}/user/${target.userName}/`,
    countRefusal,
  });

  /** Stands in for the REST API: a resource that needs a token (RFC 6750). */
  const protectedResource = async (ctx: Context) => {
    const query = new URLSearchParams(ctx.querystring);
    const token = readPresentedToken({
      headerToken: authorizationToken(ctx.get('authorization'))?.token,
      query,
    });
    if (query.has('token')) ctx.set('Cache-Control', 'no-store');
    const caller = token === undefined ? undefined : await tokenVerifier.verify(token);
    if (caller === undefined) {
      ctx.status = 401;
      ctx.set(
        'WWW-Authenticate',
        bearerChallenge(token === undefined ? undefined : 'invalid_token'),
      );
      return;
    }
    ctx.body = { name: caller.owner.name, kind: caller.owner.kind, scopes: [...caller.scopes] };
  };

  const router = new Router();
  const oauth = `${basePath}hub/api/oauth2`;
  router.get(`${oauth}/authorize`, authorizationEndpoint.show);
  router.post(`${oauth}/authorize`, authorizationEndpoint.decide);
  router.post(
    `${oauth}/token`,
    createTokenEndpoint({
      clientAuthentication,
      exchangeCode,
      answerGrants,
      findResource,
      countRefusal,
    }),
  );
  router.post(`${oauth}/device_authorization`, deviceAuthorizationEndpoint);
  router.post(`${oauth}/par`, pushEndpoint);
  router.post(`${oauth}/introspect`, introspect);
  router.post(
    `${oauth}/revoke`,
    createRevocationEndpoint({
      clientAuthentication,
      accessTokens,
      refreshTokens,
      countRefusal,
      log,
    }),
  );
  router.get(`${oauth}/jwks`, createKeySetEndpoint({ signingKeys }));
  const userInfoEndpoint = createUserInfoEndpoint({ tokenVerifier, userClaims, countRefusal });
  router.get(`${oauth}/userinfo`, userInfoEndpoint).post(`${oauth}/userinfo`, userInfoEndpoint);
  const metadata = createMetadataEndpoint({ publicUrl, scopeNames: catalogue.names });
  for (const path of metadataPaths(publicUrl)) router.get(path, metadata);
  router.get(`${basePath}hub/api/user`, async (ctx) => {
    try {
      await protectedResource(ctx);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      ctx.status = 400;
      ctx.set('WWW-Authenticate', bearerChallenge('invalid_request'));
      ctx.body = { error: error.error };
    }
  });

  const app = new Koa();
  app.use(
    errorMiddleware({
      apiPath: `${basePath}hub/api/`,
      answers: createErrorAnswers({
        hstsSeconds: undefined,
        renderErrorPage: (error) => `<!doctype html><h1>${error.status} ${error.code}</h1>`,
        log,
      }),
    }),
  );
  app.use(securityHeaders({ hstsSeconds: undefined }));
  app.use(router.routes()).use(router.allowedMethods());
  const handle = app.callback();
  server.on('request', (incoming, answer) => void handle(incoming, answer));

  const endpoint = (name: string) => `${issuer}/hub/api/oauth2/${name}`;
  const request = (url: string | URL, init: RequestInit = {}) =>
    fetch(url, { redirect: 'manual', ...init });

  /** A person at a browser: created if need be, and logged in. */
  async function login(userName: string) {
    const user = (await users.findByName(userName)) ?? (await users.create({ name: userName }));
    const sessionId = randomUUID();
    await database.kysely
      .insertInto('login_sessions')
      .values({
        session_id: sessionId,
        user_id: user.id,
        authenticator: 'fake',
        identity_id: null,
        created_at: now(),
        last_seen_at: now(),
        expires_at: now() + 14 * 24 * 3600 * 1000,
        address: '127.0.0.1',
        user_agent: 'test',
        upstream_session_id: null,
        id_token_encrypted: null,
      })
      .execute();
    return { user, sessionId, headers: { Cookie: `login=${sessionId}` } };
  }
  type Browser = Awaited<ReturnType<typeof login>>;

  function authorizationUrl(parameters: Record<string, string> | URLSearchParams): string {
    return `${endpoint('authorize')}?${new URLSearchParams(parameters)}`;
  }

  function authorize(
    parameters: Record<string, string> | URLSearchParams,
    browser?: Browser,
  ): Promise<Response> {
    return request(authorizationUrl(parameters), { headers: browser?.headers ?? {} });
  }

  /** Sends the consent form, by default as its page would. */
  function decide(
    parameters: Record<string, string> | URLSearchParams,
    browser: Browser | undefined,
    form: Record<string, string> | [string, string][] = { decision: 'allow' },
  ): Promise<Response> {
    const body = new URLSearchParams(form);
    if (browser !== undefined && !body.has('csrf')) body.set('csrf', `csrf-${browser.sessionId}`);
    const headers = browser?.headers ?? {};
    return request(authorizationUrl(parameters), { method: 'POST', body, headers });
  }

  function post(
    name: 'token' | 'device_authorization' | 'par' | 'introspect' | 'revoke',
    form: Record<string, string> | [string, string][] | URLSearchParams,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return request(endpoint(name), { method: 'POST', body: new URLSearchParams(form), headers });
  }

  /** Takes a person through the whole authorization, and gives the code. */
  async function obtainCode(
    browser: Browser,
    parameters: Record<string, string> = {},
  ): Promise<string> {
    const all = { response_type: 'code', client_id: 'service-wiki', ...parameters };
    const shown = await authorize(all, browser);
    const answer = shown.status === 302 ? shown : await decide(all, browser);
    const code = responseParameters(answer).get('code');
    if (code === null)
      throw new Error(`no code: ${answer.status} ${answer.headers.get('location')}`);
    return code;
  }

  /** Exchanges a code as the service `wiki`. */
  function exchange(code: string, parameters: Record<string, string> = {}): Promise<Response> {
    return post(
      'token',
      { grant_type: 'authorization_code', code, ...parameters },
      basic('service-wiki', wiki.secret),
    );
  }

  async function obtainToken(
    browser: Browser,
    parameters: Record<string, string> = {},
  ): Promise<string> {
    const answer = await exchange(await obtainCode(browser, parameters));
    const body = (await answer.json()) as { access_token: string };
    return body.access_token;
  }

  /** A user's server, stopped or not, and the secret it would be started with. */
  async function createServerOf(user: User, name = ''): Promise<{ secret: string; id: string }> {
    const id = randomUUID();
    await database.kysely
      .insertInto('servers')
      .values({
        id,
        user_id: user.id,
        name,
        display_name: null,
        state: 'running',
        url: null,
        spawner_state: '{}',
        user_options: '{}',
        failure: null,
        created_at: now(),
        started_at: null,
        last_activity_at: null,
      })
      .execute();
    const scopes = ['users:activity!user', 'access:servers!server'];
    const { token } = await tokenIssuer.createServerToken({ user, server: { id, name }, scopes });
    return { secret: token, id };
  }

  const disposal = parts.move();
  return {
    origin,
    issuer,
    publicUrl,
    endpoint,
    request,
    login,
    authorizationUrl,
    authorize,
    decide,
    post,
    obtainCode,
    exchange,
    obtainToken,
    createServerOf,
    /** Lets time pass, for everything that expires. */
    skipSeconds(seconds: number) {
      skippedMs += seconds * 1000;
    },
    userResource: `${issuer}/hub/api/user`,
    database,
    users,
    userInfo,
    signingKeys,
    groups,
    roles,
    authorizer,
    /** What each instance of the hub does. */
    startDeliveries,
    /** What became of telling clients of logouts, in order. */
    logoutOutcomes,
    loginSessions: createLoginSessionStore(database),
    accessTokens,
    importedTokens,
    authorizationCodes,
    serviceTokens,
    tokenVerifier,
    tokenIssuer,
    useRecorder,
    clients,
    deviceVerification,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

export type AuthorizationServerHarness = Awaited<ReturnType<typeof startAuthorizationServer>>;

/** Parameters that an authorization response sends with the browser. */
export function responseParameters(response: Response): URLSearchParams {
  const location = response.headers.get('location');
  if (location === null) throw new Error(`no redirect but ${response.status}`);
  return new URL(location).searchParams;
}

/** The error code of an answer in JSON (RFC 6749 §5.2). */
export async function errorOf(response: Response): Promise<string> {
  return ((await response.json()) as { error: string }).error;
}

/** The same behind the status. */
export async function refusalOf(response: Response): Promise<readonly [number, string]> {
  return [response.status, await errorOf(response)];
}

/** HTTP Basic with form-encoded id and secret (RFC 6749 §2.3.1). */
export function basic(clientId: string, clientSecret: string): { Authorization: string } {
  const encode = (text: string) => encodeURIComponent(text).replaceAll('%20', '+');
  const pair = `${encode(clientId)}:${encode(clientSecret)}`;
  return { Authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}
