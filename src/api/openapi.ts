import type Router from '@koa/router';
import { accountOperations } from './openapi-accounts.ts';
import { otherOperations } from './openapi-hub.ts';
import { loginOperations } from './openapi-logins.ts';
import { type Operations, toOperationObject } from './openapi-operation.ts';
import { schemas } from './openapi-schemas.ts';
import { serverOperations } from './openapi-servers.ts';

/** Every operation of the API, as `METHOD /path`. */
export const operations: Operations = {
  ...otherOperations,
  ...accountOperations,
  ...loginOperations,
  ...serverOperations,
};

/** An OpenAPI document, as far as its readers here look into it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [member: string]: unknown;
}

/** Describes the API of a hub (OpenAPI 3.1). */
export function createOpenApiDocument(options: {
  readonly version: string;
  /** Public URL of the hub; the paths are relative to it. */
  readonly publicUrl: URL;
}): OpenApiDocument {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, facts] of Object.entries(operations)) {
    const [method = '', path = ''] = name.split(' ');
    paths[path] = { ...paths[path], [method.toLowerCase()]: toOperationObject(path, facts) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hub',
      version: options.version,
      description:
        'A token goes into the Authorization header as `token` or `Bearer`. Without the scope an answer is 403; with the scope, but not for this resource, 404.',
    },
    servers: [{ url: options.publicUrl.href.replace(/\/$/, '') }],
    security: [{ token: [] }, { login: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        login: {
          type: 'apiKey',
          in: 'cookie',
          name: 'hub-hub-login',
          description: 'Changes need the CSRF token of the page in the header X-CSRF-Token, too.',
        },
      },
      responses: {
        Error: {
          description: 'What went wrong.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      schemas,
    },
  };
}

/** `GET /openapi.json`: the description of the API, for everyone. */
export function openApiRoutes(router: Router, document: OpenApiDocument): void {
  const body = JSON.stringify(document);
  router.get('/openapi.json', (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.type = 'application/json';
    ctx.body = body;
  });
}
