import type Router from '@koa/router';
import Koa from 'koa';
import { describe, expect, test } from 'vitest';
import { createApp } from '../../src/composition/app.ts';
import { addApi } from '../../src/composition/operations.ts';
import { createOpenApiDocument, declarations } from '../../src/entrances/api/openapi.ts';
import { createScopeCatalogue } from '../../src/identity/rbac/scope-definitions.ts';
import { parameterNames } from '../../src/operations/operation.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createTestHub } from '../support/test-hub.ts';

/** Stands for every part: registering routes calls none of them. */
const anything: never = new Proxy(() => anything, {
  get: (_target, member) => (member === Symbol.toPrimitive ? () => 'anything' : anything),
}) as never;

/** Every address below `/hub/api/` that the app answers, as `METHOD /path`. */
function registeredOperations(): string[] {
  const app = new Koa();
  const hub: Partial<Record<keyof Parameters<typeof createApp>[0], unknown>> = {
    app,
    basePath: '/',
    config: { Hub: {}, Proxy: {} },
    origins: anything,
    log: anything,
    metrics: anything,
    sessions: anything,
    callerMiddleware: anything,
    confirmLogin: anything,
    csrf: anything,
    jupyterHub: { headers: {} },
    oauth: {
      ...Object.fromEntries(
        [
          'token',
          'deviceAuthorization',
          'push',
          'introspection',
          'revocation',
          'metadata',
          'keySet',
          'userInfo',
        ].map((name) => [name, anything]),
      ),
      showAuthorization: anything,
      decideAuthorization: anything,
      metadataPaths: ['/.well-known/oauth-authorization-server'],
    },
    pages: anything,
    publicUrl: new URL('http://hub/'),
    readiness: anything,
  };
  createApp(hub as never, { addApi, addPages: () => undefined, addOuterPages: () => undefined });
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

/** A path with its parameters as the router has them, and as a description does. */
const nameOf = (method: string, path: string) => `${method} /hub/api${path}`;

describe('the operations of the API', () => {
  test('are what the app answers below its path, and nothing else is', () => {
    const declared = declarations.flatMap(({ method, path, aliases = [] }) =>
      [path, ...aliases].map((each) => nameOf(method, each)),
    );
    expect(declared.toSorted()).toEqual([...new Set(registeredOperations())].toSorted());
  });

  test('name only scopes that exist, each operation once, and the parameters of their target', () => {
    const catalogue = createScopeCatalogue();
    const unknown = declarations
      .flatMap(({ scopes }) => (typeof scopes === 'string' ? [] : scopes))
      .filter((scope) => catalogue.get(scope) === undefined);
    expect(unknown).toEqual([]);
    expect(new Set(declarations.map(({ id }) => id)).size).toBe(declarations.length);
    const needed = { user: 'name', server: 'name', group: 'group', service: 'service' } as const;
    for (const { id, path, target } of declarations) {
      if (target === undefined || !(target in needed)) continue;
      expect(parameterNames(path), id).toContain(needed[target as keyof typeof needed]);
    }
  });
});

describe('the description of the API', () => {
  const document = createOpenApiDocument({
    version: '1',
    publicUrl: new URL('http://hub/'),
    loginCookie: 'hub-hub-login',
  });
  const described = (name: string): Record<string, unknown> => {
    const [method = '', path = ''] = name.split(' ');
    return document.paths[path]?.[method.toLowerCase()] as Record<string, unknown>;
  };
  const bodyOf = (name: string) =>
    childOf(described(name), 'requestBody') as {
      required: boolean;
      content: Record<string, { schema: Record<string, unknown> }>;
    };

  test('is served to everyone, and every reference in it leads somewhere', async () => {
    await using hub = await createTestHub();
    const answer = await hub.api('/openapi.json', undefined);
    expect(answer.status).toBe(200);
    const served = await answer.json();
    expect(served).toMatchObject({ openapi: '3.1.0', info: { version: '0.0.0-test' } });
    const references = [...JSON.stringify(served).matchAll(/"\$ref":"#\/([^"]*)"/g)];
    expect(references.length).toBeGreaterThan(30);
    for (const [, path = ''] of references) {
      const target = path.split('/').reduce<unknown>(childOf, served);
      expect(target, path).toBeTypeOf('object');
    }
  });

  test('leaves out what only gateways of the same version ask', () => {
    expect(Object.keys(document.paths).filter((path) => path.includes('/gateway/'))).toEqual([]);
    expect(JSON.stringify(document)).not.toContain('GatewayFeedEvent');
  });

  test('is written once, and not sent again to who has it', async () => {
    await using hub = await createTestHub();
    // Not by fetch, which asks caches to be left out along with If-None-Match.
    const ask = (headers: Record<string, string> = {}) =>
      new FakeBrowser().request(`${hub.url}hub/api/openapi.json`, { headers });
    const first = await ask();
    const { stringify } = JSON;
    using _undo = { [Symbol.dispose]: () => Object.assign(JSON, { stringify }) };
    let longest = 0;
    const counting = (...args: Parameters<typeof stringify>) => {
      const written = stringify(...args);
      longest = Math.max(longest, String(written).length);
      return written;
    };
    Object.assign(JSON, { stringify: counting });
    const second = await ask();
    expect(second.body === first.body).toBe(true);
    expect(longest).toBeLessThan(first.body.length / 10);
    const { etag = '', 'content-type': type } = second.headers;
    expect(type).toBe('application/json; charset=utf-8');
    const third = await ask({ 'if-none-match': etag });
    expect([third.status, third.body, third.headers.etag]).toEqual([304, '', etag]);
    expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('has the bounds of what it takes, and says what may be left out', () => {
    const token = bodyOf('POST /hub/api/users/{name}/tokens');
    expect(token.required).toBe(false);
    expect(token.content['application/json']?.schema).toMatchObject({
      properties: {
        note: { type: 'string', maxLength: 500 },
        expires_in: { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }] },
      },
    });
    expect(token.content['application/json']?.schema['required']).toBeUndefined();
    const members = bodyOf('POST /hub/api/groups/{group}/users');
    expect(members.required).toBe(true);
    expect(members.content['application/json']?.schema).toMatchObject({
      properties: { users: { type: 'array', maxItems: 1000, items: { maxLength: 255 } } },
      required: ['users'],
    });
    const users = bodyOf('POST /hub/api/users').content['application/json']?.schema;
    expect(users).toMatchObject({ properties: { usernames: { minItems: 1, maxItems: 500 } } });
    const shutdown = bodyOf('POST /hub/api/shutdown');
    expect(shutdown.required).toBe(false);
    expect(shutdown.content['application/json']?.schema['required']).toBeUndefined();
  });

  test('describes lists in pages with and without their envelope', () => {
    const users = described('GET /hub/api/users');
    expect(users['parameters']).toContainEqual(
      expect.objectContaining({
        in: 'query',
        name: 'offset',
        required: false,
        schema: expect.objectContaining({ type: 'integer', minimum: 0 }),
      }),
    );
    const content = ['responses', '200', 'content'].reduce<unknown>(childOf, users);
    const item = { $ref: '#/components/schemas/User' };
    expect(content).toMatchObject({
      'application/json': { schema: { type: 'array', items: item } },
      'application/jupyterhub-pagination+json': {
        schema: { properties: { items: { type: 'array', items: item } } },
      },
    });
  });

  test('names the version of the hub where it gives one of JupyterHub', async () => {
    await using hub = await createTestHub({
      Hub: { environment_prefixes: ['HUB', 'JUPYTERHUB'] },
    });
    const info = (await (await hub.api('/info', 'admin-service-token')).json()) as object;
    expect(info).toMatchObject({ hub_version: '0.0.0-test' });
    const schema = ['responses', '200', 'content', 'application/json', 'schema', 'properties'];
    const members = schema.reduce<unknown>(childOf, described('GET /hub/api/info'));
    expect(Object.keys(members as object)).toEqual(expect.arrayContaining(Object.keys(info)));
  });
});
