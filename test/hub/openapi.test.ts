import type Router from '@koa/router';
import Koa from 'koa';
import { describe, expect, test } from 'vitest';
import { operations } from '../../src/api/openapi.ts';
import { createApp } from '../../src/app.ts';
import { addApi } from '../../src/composition/compose-api.ts';
import { createScopeCatalogue } from '../../src/rbac/scope-definitions.ts';
import { createTestHub } from '../support/test-hub.ts';

/** Stands for every part: registering routes calls none of them. */
const anything: never = new Proxy(() => anything, {
  get: (_target, member) => (member === Symbol.toPrimitive ? () => 'anything' : anything),
}) as never;

/** Every address below `/hub/api/` that the app answers, as `METHOD /path`. */
function registeredOperations(): string[] {
  const app = new Koa();
  createApp({
    app,
    basePath: '/',
    isHttps: false,
    log: anything,
    clientAddress: anything,
    metrics: anything,
    assets: anything,
    renderErrorPage: anything,
    sessions: anything,
    callerMiddleware: anything,
    requireMetricsAccess: anything,
    oauth: {
      showAuthorization: anything,
      decideAuthorization: anything,
      token: anything,
      introspection: anything,
      revocation: anything,
      metadata: anything,
      metadataPaths: ['/.well-known/oauth-authorization-server'],
    },
    addApiRoutes: (router) =>
      addApi(router, anything, { Proxy: {}, publicUrl: new URL('http://hub/') } as never, anything),
    addPageRoutes: () => undefined,
    addOuterRoutes: () => undefined,
    compatibilityHeaders: {},
  });
  return (
    app.middleware
      .flatMap((middleware) => (middleware as { router?: Router }).router?.stack ?? [])
      .flatMap(({ methods, path }) => methods.map((method) => `${method} ${String(path)}`))
      // The router takes its bare prefix for the prefix with a slash.
      .map((name) => name.replace(/ \/hub\/api$/, ' /hub/api/'))
      .filter((name) => name.includes(' /hub/api/') && !name.startsWith('HEAD '))
      .map((name) => name.replaceAll(/:(\w+)/g, '{$1}'))
  );
}

function childOf(holder: unknown, step: string): unknown {
  return (holder as Record<string, unknown> | undefined)?.[step];
}

describe('the description of the API', () => {
  test('has every registered address, and no other', () => {
    expect(Object.keys(operations).toSorted()).toEqual(
      [...new Set(registeredOperations())].toSorted(),
    );
  });

  test('names only scopes that exist, and each operation once', () => {
    const catalogue = createScopeCatalogue();
    const all = Object.values(operations);
    const unknown = all
      .flatMap(({ scopes = [] }) => scopes)
      .filter((scope) => catalogue.get(scope) === undefined);
    expect(unknown).toEqual([]);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  });

  test('is served to everyone, and every reference in it leads somewhere', async () => {
    await using hub = await createTestHub();
    const answer = await hub.api('/openapi.json', undefined);
    expect(answer.status).toBe(200);
    const document = await answer.json();
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '0.0.0-test' } });
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]*)"/g)];
    for (const [, path = ''] of references) {
      const target = path.split('/').reduce<unknown>(childOf, document);
      expect(target, path).toBeTypeOf('object');
    }
  });

  test('tells the statuses with which the hub answers', async () => {
    await using hub = await createTestHub();
    const readable = Object.entries(operations).filter(
      ([name]) => name.startsWith('GET ') && !name.includes('{') && !name.includes('oauth2'),
    );
    for (const [name, { responses, scopes }] of readable) {
      const path = name.slice('GET /hub/api'.length);
      const answer = await hub.api(path, 'admin-service-token');
      expect(Object.keys(responses), name).toContain(String(answer.status));
      const anonymous = await hub.api(path, undefined);
      expect(anonymous.status, name).toBe(scopes === undefined ? 200 : 403);
    }
  });
});
