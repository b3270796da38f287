import { z } from 'zod';
import { errorModel } from '../../operations/models.ts';
import {
  type AnswerDeclaration,
  type OperationDeclaration,
  parameterNames,
  pathParameters,
  tags,
} from '../../operations/operation.ts';
import { operations } from '../../operations/operations.ts';
import { isOptional } from '../../operations/perform.ts';
import { endpoints } from './endpoints.ts';
import { envelopeMediaType, pagination, queryOf } from './paging.ts';

/** Everything that answers below `/hub/api`. */
export const declarations: readonly OperationDeclaration[] = [
  ...operations,
  ...Object.values<OperationDeclaration>(endpoints),
];

/** What clients may rely on. */
export const publicDeclarations = declarations.filter(({ audience }) => audience === undefined);

/** Where the description stands for more than addresses that are there only to say that they do not work here. */
const described = publicDeclarations.filter(({ answers }) =>
  Object.keys(answers).some((status) => Number(status) < 400),
);

/** An OpenAPI document, as far as its readers here look into it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [member: string]: unknown;
}

/** Every JSON Schema of the document, by the schema it was made of; and those with names. */
interface JsonSchemas {
  readonly of: (schema: z.ZodType) => object;
  readonly named: Readonly<Record<string, object>>;
}

/** Describes the API of a hub (OpenAPI 3.1). */
export function createOpenApiDocument(options: {
  readonly version: string;
  /** Public URL of the hub; the paths are relative to it. */
  readonly publicUrl: URL;
  /** Name of the cookie of a login. */
  readonly loginCookie: string;
}): OpenApiDocument {
  const schemas = toJsonSchemas(described.flatMap(schemasOf));
  const paths: Record<string, Record<string, object>> = {};
  for (const declaration of described) {
    const path = `/hub/api${declaration.path}`.replace(/\/$/, '');
    const method = declaration.method.toLowerCase();
    paths[path] = { ...paths[path], [method]: describe(declaration, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hub',
      version: options.version,
      contact: { name: 'The operators of this hub', url: options.publicUrl.href },
      license: { name: 'BSD 3-Clause', identifier: 'BSD-3-Clause' },
      description:
        'A token goes into the Authorization header as `token` or `Bearer`, from a program also as the password of `Basic`. Without the scope an answer is 403; with the scope, but not for this resource, 404.',
    },
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    servers: [{ url: options.publicUrl.href.replace(/\/$/, '') }],
    security: [{ token: [] }, { login: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        login: {
          type: 'apiKey',
          in: 'cookie',
          name: options.loginCookie,
          description:
            'Needs the CSRF token of the page in the header X-CSRF-Token, too, unless a window of its own reads the address.',
        },
      },
      responses: {
        Error: {
          description: 'What went wrong.',
          content: { 'application/json': { schema: schemas.of(errorModel) } },
        },
      },
      schemas: schemas.named,
    },
  };
}

/** Writes an operation as OpenAPI does. */
function describe(declaration: OperationDeclaration, schemas: JsonSchemas): object {
  const { id, tag, summary, scopes, body, answers } = declaration;
  const description = [
    declaration.description,
    aliasText(declaration),
    pagedText(declaration),
    scopeText(scopes),
    recentLoginText(declaration),
  ]
    .filter((text) => text !== undefined)
    .join('\n\n');
  const parameters = [
    ...parameterNames(declaration.path).map((name) =>
      parameter('path', name, pathParameters[name], schemas),
    ),
    ...Object.entries(queryOf(declaration)).map(([name, schema]) =>
      parameter('query', name, schema, schemas),
    ),
    ...(declaration.isVersioned === true && declaration.method !== 'GET'
      ? [parameter('header', 'If-Match', ifMatch, schemas)]
      : []),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== '' && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: !isOptional(body),
        content: {
          [declaration.bodyMediaType ?? 'application/json']: { schema: schemas.of(body) },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [
          status,
          describeAnswer(answer, declaration, schemas),
        ]),
      ),
      ...Object.fromEntries(
        refusalsOf(declaration)
          .filter((status) => answers[status] === undefined)
          .map((status) => [status, errorResponse]),
      ),
      default: errorResponse,
    },
    ...(scopes === 'public' && { security: [] }),
  };
}

const errorResponse = { $ref: '#/components/responses/Error' };

/** How it may be refused, so that a typed client can tell one refusal from another. */
function refusalsOf({ path, scopes, isVersioned }: OperationDeclaration): number[] {
  return [
    400,
    ...(scopes === 'public' ? [] : [403]),
    ...(parameterNames(path).length === 0 ? [] : [404]),
    ...(isVersioned === true ? [412] : []),
  ];
}

function describeAnswer(
  { description, schema, mediaType = 'application/json', others = {} }: AnswerDeclaration,
  { isPaged }: OperationDeclaration,
  schemas: JsonSchemas,
): object {
  if (schema === undefined) return { description };
  const inEnvelope = {
    schema: {
      type: 'object',
      properties: { items: schemas.of(schema), _pagination: schemas.of(pagination) },
      required: ['items', '_pagination'],
    },
  };
  return {
    description,
    content: {
      [mediaType]: isPaged === 'in_envelope' ? inEnvelope : { schema: schemas.of(schema) },
      ...(isPaged !== undefined && { [envelopeMediaType]: inEnvelope }),
      ...Object.fromEntries(
        Object.entries(others).map(([type, other]) => [type, { schema: schemas.of(other) }]),
      ),
    },
  };
}

const ifMatch = z
  .string()
  .optional()
  .describe('`ETag` of the version that is to be changed; 412 when there is another by now.');

function parameter(
  place: 'path' | 'query' | 'header',
  name: string,
  schema: z.ZodType,
  schemas: JsonSchemas,
): object {
  const { description, ...shape } = schemas.of(schema) as Record<string, unknown>;
  return { in: place, name, description, required: !isOptional(schema), schema: shape };
}

function scopeText(scopes: OperationDeclaration['scopes']): string | undefined {
  if (typeof scopes === 'string') return undefined;
  return `Needs ${scopes.length > 1 ? 'any of ' : ''}${scopes.map((scope) => `\`${scope}\``).join(', ')}.`;
}

function recentLoginText({ needsRecentLogin }: OperationDeclaration): string | undefined {
  return needsRecentLogin === true
    ? 'With a login cookie it needs a login that is recent (`Authenticator.recent_login_seconds`), else 403 with the code `recent_login_required` and `confirm_url`, the page on which users confirm who they are. Tokens need none.'
    : undefined;
}

function aliasText({ aliases = [] }: OperationDeclaration): string | undefined {
  const paths = aliases.map((alias) => `\`/hub/api${alias}\``);
  return paths.length === 0 ? undefined : `Also at ${paths.join(', ')}.`;
}

function pagedText({ isPaged }: OperationDeclaration): string | undefined {
  if (isPaged === 'in_envelope') {
    return 'The list comes as `items`, beside `_pagination` with `offset`, `limit`, `total` and `next`.';
  }
  return isPaged === true
    ? `With \`Accept: ${envelopeMediaType}\` the list comes as \`items\`, beside \`_pagination\` with \`offset\`, \`limit\`, \`total\` and \`next\`.`
    : undefined;
}

function schemasOf(declaration: OperationDeclaration): z.ZodType[] {
  const { body, answers, path } = declaration;
  return [
    errorModel,
    pagination,
    ...parameterNames(path).map((name) => pathParameters[name]),
    ...Object.values(queryOf(declaration)),
    ifMatch,
    body,
    ...Object.values(answers).flatMap(({ schema, others = {} }) => [
      schema,
      ...Object.values(others),
    ]),
  ].filter((schema) => schema !== undefined);
}

/** Makes JSON Schemas of all at once, so that what has a name is written once and referred to. */
function toJsonSchemas(schemas: readonly z.ZodType[]): JsonSchemas {
  const all = [...new Set(schemas)];
  const json = z.toJSONSchema(
    z.object(Object.fromEntries(all.map((each, index) => [index, each]))),
    {
      io: 'input',
      override({ jsonSchema }) {
        // The pattern says no more than the format does, in 300 characters.
        if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
        delete jsonSchema.propertyNames;
        // Members with defaults of their own make it up; generators take it for a value that lacks them.
        if (jsonSchema.type === 'object') delete jsonSchema.default;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        delete jsonSchema.id;
      },
    },
  );
  const { properties = {}, $defs = {} } = JSON.parse(
    JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as { properties?: Record<string, object>; $defs?: Record<string, object> };
  const byIndex = new Map(all.map((schema, index) => [schema, properties[index] ?? {}]));
  return { of: (schema) => byIndex.get(schema) ?? {}, named: $defs };
}
