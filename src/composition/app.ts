import Router from '@koa/router';
import type { Context } from 'koa';
import { callerOf } from '../entrances/api/caller-middleware.ts';
import { endpoints } from '../entrances/api/endpoints.ts';
import { readinessMiddleware } from '../entrances/api/readiness.ts';
import type { Assets } from '../entrances/pages/assets/assets.ts';
import { createUserErrorPages } from '../entrances/pages/errors/error-page-renderer.ts';
import { formRedirects } from '../entrances/pages/login/interstitial-redirect.ts';
import { authorise } from '../operations/perform.ts';
import { HubError } from '../platform/errors.ts';
import { baseRedirectFor } from '../platform/http/base-path.ts';
import { setBody } from '../platform/http/body.ts';
import { compressPages, sendFile, sendText } from '../platform/http/compression.ts';
import { prefersOpenMetrics } from '../platform/http/content-negotiation.ts';
import { hostCookies } from '../platform/http/cookies.ts';
import { errorMiddleware } from '../platform/http/error-answers.ts';
import { hostRedirects } from '../platform/http/origins.ts';
import { auditMiddleware, requestLog } from '../platform/http/request-log.ts';
import { openToOrigins, securityHeaders } from '../platform/http/security-headers.ts';
import { metricsTypes } from '../platform/metrics/metrics.ts';
import { text } from '../platform/texts/text.ts';
import { addApi, type Whole } from './operations.ts';
import { addOuterPages, addPages } from './pages.ts';

/** Builds the URL map of the hub: the order of the middleware and every route, top to bottom. */
export function createApp(hub: Whole, routes = { addApi, addPages, addOuterPages }): void {
  const { app, basePath, config, origins, metrics, oauth, csrf, callerMiddleware } = hub;
  const hubPath = `${basePath}hub/`;
  const apiPath = `${hubPath}api/`;
  const pathOf = (endpoint: { readonly path: string }) => apiPath + endpoint.path.slice(1);

  // What reaches Koa itself is a connection that broke during the answer, which is not the hub's fault.
  app.on('error', (error: unknown) =>
    hub.log.debug({ err: error }, 'client disconnected before response'),
  );
  app.use(requestLog({ ...hub, observe: metrics.countRequest }));
  app.use(
    errorMiddleware({
      apiPath,
      answers: hub.errorAnswers,
      renderPage: createUserErrorPages(hub.pages, csrf),
    }),
  );
  app.use(auditMiddleware(hub.audit));
  app.use(
    securityHeaders({
      ...hub,
      imageSources: config.Hub.picture_origins,
      otherHeaders: hub.jupyterHub.headers,
    }),
  );
  if (origins.areSeparate) app.use(hostRedirects(origins));
  if (origins.hasHostCookies) app.use(hostCookies());

  const { keySet, userInfo, token, deviceAuthorization, push, revocation } = endpoints;
  // What is asked there is proved by a token or a code, never by a cookie: a page of a client may ask as any program may.
  const provedByItself = [keySet, userInfo, token, deviceAuthorization, push, revocation];
  app.use(openToOrigins([...oauth.metadataPaths, ...provedByItself.map(pathOf)], apiPath));

  async function requireMetricsAccess(ctx: Context): Promise<void> {
    if (!config.Hub.authenticate_prometheus) return;
    authorise(endpoints.metrics, {}, callerOf(ctx), await hub.authorizer.membership());
  }
  const readiness = readinessMiddleware({
    check: hub.readiness.check,
    requireDetailAccess: (ctx) => callerMiddleware(ctx, () => requireMetricsAccess(ctx)),
  });

  const operation = new Router({ sensitive: true });
  operation.get([`${hubPath}health`, pathOf(endpoints.health)], (ctx) => {
    setBody(ctx, { status: 'ok' });
  });
  operation.get([`${hubPath}ready`, pathOf(endpoints.readiness)], readiness);
  operation.get(`${hubPath}static/:name`, (ctx) => serveAsset(ctx, hub.assets, ctx.path));
  // Browsers ask for it at the root of the host whatever a page says, and tools that list web apps do too.
  operation.get([...new Set(['/favicon.ico', `${basePath}favicon.ico`])], (ctx) =>
    serveAsset(ctx, hub.assets, hub.faviconUrl(), 'no-cache'),
  );
  for (const path of oauth.metadataPaths) operation.get(path, oauth.metadata);
  operation.get(pathOf(endpoints.keySet), oauth.keySet);
  operation.get(pathOf(endpoints.userInfo), oauth.userInfo);
  operation.post(pathOf(endpoints.postUserInfo), oauth.userInfo);
  operation.post(pathOf(endpoints.token), oauth.token);
  operation.post(pathOf(deviceAuthorization), oauth.deviceAuthorization);
  operation.post(pathOf(push), oauth.push);
  operation.post(pathOf(endpoints.introspection), oauth.introspection);
  operation.post(pathOf(endpoints.revocation), oauth.revocation);
  app.use(operation.routes());

  const authorizePaths = [endpoints.showAuthorization, endpoints.decideAuthorization].map(pathOf);
  // Metrics are asked for as the API is; the others are asked for by pages of JupyterHub software, and tell nothing.
  const openPaths = ['metrics', 'logo', 'security/csp-report'].map((path) => hubPath + path);
  app.use(hub.sessions.middleware);
  app.use(csrf.middleware({ hubPath, apiPath, openPaths, authorizePaths }));

  const authorization = new Router({ sensitive: true });
  authorization.get(pathOf(endpoints.showAuthorization), oauth.showAuthorization);
  const leadOn = formRedirects(hub.pages, hub.publicUrl);
  authorization.post(pathOf(endpoints.decideAuthorization), leadOn, oauth.decideAuthorization);
  app.use(authorization.routes());

  const api = new Router({ prefix: apiPath.slice(0, -1), sensitive: true });
  api.use(callerMiddleware);
  routes.addApi(api, hub);
  const metricsRouter = new Router({ sensitive: true });
  metricsRouter.get(
    [`${hubPath}metrics`, pathOf(endpoints.metrics)],
    callerMiddleware,
    async (ctx) => {
      await requireMetricsAccess(ctx);
      const format = prefersOpenMetrics(ctx.req.headers) ? 'openMetrics' : 'prometheus';
      await sendText(ctx, await metrics.exposition(metricsTypes[format]));
      ctx.vary('Accept');
      ctx.set('Content-Type', metricsTypes[format]);
    },
  );
  app.use(metricsRouter.routes());
  app.use(api.routes());

  const pages = new Router({ prefix: hubPath.slice(0, -1), sensitive: true });
  pages.use(compressPages(hub));
  pages.use((ctx, next) => (ctx.method === 'POST' ? leadOn(ctx, next) : next()));
  routes.addPages(pages, hub);
  app.use(pages.routes());

  app.use(async (ctx, next) => {
    const target = baseRedirectFor(ctx.originalUrl, basePath);
    if (target === undefined) return next();
    ctx.redirect(target);
    // Keeps the method and the body of what was sent to another spelling.
    ctx.status = 307;
  });
  const outer = new Router({ sensitive: true });
  routes.addOuterPages(outer, hub);
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
}

function serveAsset(
  ctx: Context,
  assets: Assets,
  path: string,
  cacheControl?: string,
): Promise<void> {
  const asset = assets.find(path);
  if (asset === undefined) throw new HubError('not_found', text`There is no such file.`);
  ctx.set('Cache-Control', cacheControl ?? asset.cacheControl);
  if (asset.contentSecurityPolicy !== undefined)
    ctx.set('Content-Security-Policy', asset.contentSecurityPolicy);
  ctx.set('ETag', asset.etag);
  ctx.set('Content-Type', asset.contentType);
  return sendFile(ctx, asset.body);
}
