import Router from '@koa/router';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { endpoints } from '../entrances/api/endpoints.ts';
import type { Assets } from '../entrances/pages/assets/assets.ts';
import type { CsrfProtection } from '../identity/sessions/csrf.ts';
import { HubError } from '../platform/errors.ts';
import { baseRedirectFor } from '../platform/http/base-path.ts';
import type { ClientAddressReader } from '../platform/http/client-address.ts';
import type { ErrorAnswers } from '../platform/http/error-answers.ts';
import { errorMiddleware } from '../platform/http/error-middleware.ts';
import { hostCookies } from '../platform/http/host-cookies.ts';
import { hostRedirects } from '../platform/http/host-redirects.ts';
import { setBody } from '../platform/http/json-body.ts';
import type { Origins } from '../platform/http/origins.ts';
import { requestLog } from '../platform/http/request-log.ts';
import { keepOpener, securityHeaders } from '../platform/http/security-headers.ts';
import type { Metrics } from '../platform/metrics/metrics.ts';
import { text } from '../platform/texts/text.ts';

/** The endpoints of the authorization server. */
export interface OAuthEndpoints {
  readonly showAuthorization: Middleware;
  readonly decideAuthorization: Middleware;
  readonly token: Middleware;
  readonly introspection: Middleware;
  readonly revocation: Middleware;
  readonly metadata: Middleware;
  readonly metadataPaths: readonly string[];
}

/** Builds the URL map of the hub: the order of the middleware and every route, top to bottom. */
export function createApp(deps: {
  readonly app: Koa;
  readonly basePath: string;
  readonly isHttps: boolean;
  /** `Hub.picture_origins`. */
  readonly pictureOrigins: readonly string[];
  readonly origins: Origins;
  readonly log: Logger;
  readonly clientAddress: ClientAddressReader;
  readonly metrics: Metrics;
  readonly assets: Assets;
  /** The address of the icon of the browser tab. */
  readonly faviconUrl: () => string;
  readonly errorAnswers: ErrorAnswers;
  readonly renderErrorPage: Parameters<typeof errorMiddleware>[0]['renderPage'] & {};
  /** Tells the audit log who asks. */
  readonly audit: Middleware;
  /** Reads the login of every request. */
  readonly sessions: Middleware;
  readonly callerMiddleware: Middleware;
  /** Leads browsers on after a form. */
  readonly formRedirects: Middleware;
  readonly csrf: Pick<CsrfProtection, 'requireDocument' | 'requireNavigation'>;
  readonly oauth: OAuthEndpoints;
  /** Says whether the hub can do its work now. */
  readonly readiness: Middleware;
  /** Refuses who may not read the metrics. */
  readonly requireMetricsAccess: Middleware;
  readonly addApiRoutes: (router: Router) => void;
  readonly addPageRoutes: (router: Router) => void;
  /** Routes outside `/hub/`, such as the address of a server that is not running. */
  readonly addOuterRoutes: (router: Router) => void;
  /** Headers that software written for JupyterHub expects. */
  readonly compatibilityHeaders: Readonly<Record<string, string>>;
}): Koa {
  const { app, basePath, isHttps, origins, log, clientAddress, metrics, oauth } = deps;
  const hubPath = `${basePath}hub/`;
  const apiPath = `${hubPath}api/`;
  const pathOf = (endpoint: { readonly path: string }) => apiPath + endpoint.path.slice(1);

  // What reaches Koa itself is a connection that broke during the answer, which is not the hub's fault.
  app.on('error', (error: unknown) =>
    log.debug({ err: error }, 'client disconnected before response'),
  );
  app.use(requestLog({ log, clientAddress, observe: metrics.countRequest }));
  app.use(
    errorMiddleware({ apiPath, answers: deps.errorAnswers, renderPage: deps.renderErrorPage }),
  );
  app.use(deps.audit);
  app.use(
    securityHeaders({
      isHttps,
      imageSources: deps.pictureOrigins,
    }),
  );
  if (origins.areSeparate) app.use(hostRedirects(origins));
  if (origins.hasHostCookies) app.use(hostCookies());
  const compatibilityHeaders = Object.entries(deps.compatibilityHeaders);
  app.use(async (ctx, next) => {
    for (const [name, value] of compatibilityHeaders) ctx.res.setHeader(name, value);
    await next();
  });

  app.use(async (ctx, next) => {
    // Programs in browsers may ask which headers they can send; the answer allows no other origin.
    if (ctx.method === 'OPTIONS' && ctx.path.startsWith(apiPath)) {
      ctx.set('Access-Control-Allow-Headers', 'accept, content-type, authorization');
    }
    await next();
  });

  const operation = new Router({ sensitive: true });
  operation.get([`${hubPath}health`, pathOf(endpoints.health)], (ctx) => {
    setBody(ctx, { status: 'ok' });
  });
  operation.get([`${hubPath}ready`, pathOf(endpoints.readiness)], deps.readiness);
  operation.get(`${hubPath}static/:name`, (ctx) => serveAsset(ctx, deps.assets, ctx.path));
  // Browsers ask for it at the root of the host whatever a page says, and tools that list web apps do too.
  operation.get([...new Set(['/favicon.ico', `${basePath}favicon.ico`])], (ctx) =>
    serveAsset(ctx, deps.assets, deps.faviconUrl(), 'no-cache'),
  );
  for (const path of oauth.metadataPaths) operation.get(path, oauth.metadata);
  operation.post(pathOf(endpoints.token), oauth.token);
  operation.post(pathOf(endpoints.introspection), oauth.introspection);
  operation.post(pathOf(endpoints.revocation), oauth.revocation);
  app.use(operation.routes());

  const authorizePaths = [endpoints.showAuthorization, endpoints.decideAuthorization].map(pathOf);
  // Metrics are asked for as the API is; the others are asked for by pages of JupyterHub software, and tell nothing.
  const openPaths = ['metrics', 'logo', 'security/csp-report'].map((path) => hubPath + path);
  app.use(deps.sessions);
  app.use(deps.formRedirects);
  app.use(async (ctx, next) => {
    const isPage = ctx.path.startsWith(hubPath) && !ctx.path.startsWith(apiPath);
    // Without a cookie there is no login that a script could use.
    const hasCookie = ctx.req.headers.cookie !== undefined;
    if (isPage && !openPaths.includes(ctx.path) && hasCookie) deps.csrf.requireDocument(ctx);
    if (authorizePaths.includes(ctx.path)) {
      keepOpener(ctx);
      if (hasCookie) deps.csrf.requireNavigation(ctx);
    }
    await next();
  });

  const authorization = new Router({ sensitive: true });
  authorization.get(pathOf(endpoints.showAuthorization), oauth.showAuthorization);
  authorization.post(pathOf(endpoints.decideAuthorization), oauth.decideAuthorization);
  app.use(authorization.routes());

  const api = new Router({ prefix: apiPath.slice(0, -1), sensitive: true });
  api.use(deps.callerMiddleware);
  deps.addApiRoutes(api);
  const metricsRouter = new Router({ sensitive: true });
  metricsRouter.get(
    [`${hubPath}metrics`, pathOf(endpoints.metrics)],
    deps.callerMiddleware,
    deps.requireMetricsAccess,
    async (ctx) => {
      ctx.body = await metrics.exposition();
      ctx.set('Content-Type', metrics.contentType);
    },
  );
  app.use(metricsRouter.routes());
  app.use(api.routes());

  const pages = new Router({ prefix: hubPath.slice(0, -1), sensitive: true });
  deps.addPageRoutes(pages);
  app.use(pages.routes());

  app.use(async (ctx, next) => {
    const target = baseRedirectFor(ctx.originalUrl, basePath);
    if (target === undefined) return next();
    ctx.redirect(target);
    // Keeps the method and the body of what was sent to another spelling.
    ctx.status = 307;
  });
  const outer = new Router({ sensitive: true });
  deps.addOuterRoutes(outer);
  app.use(outer.routes());

  for (const router of [operation, authorization, metricsRouter, api, pages, outer]) {
    app.use(
      router.allowedMethods({
        throw: true,
        methodNotAllowed: () =>
          new HubError('method_not_allowed', text`This address does not take that method.`),
        notImplemented: () =>
          new HubError('method_not_allowed', text`The hub does not know that method.`),
      }),
    );
  }
  return app;
}

function serveAsset(ctx: Koa.Context, assets: Assets, path: string, cacheControl?: string): void {
  const asset = assets.find(path);
  if (asset === undefined) throw new HubError('not_found', text`There is no such file.`);
  ctx.set('Cache-Control', cacheControl ?? asset.cacheControl);
  if (asset.contentSecurityPolicy !== undefined)
    ctx.set('Content-Security-Policy', asset.contentSecurityPolicy);
  ctx.set('ETag', asset.etag);
  ctx.set('Content-Type', asset.contentType);
  ctx.status = 200;
  if (ctx.fresh) ctx.status = 304;
  else ctx.body = asset.body;
}
