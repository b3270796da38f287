/** A JSON Schema, or a reference to one of the document's own. */
export type Schema = Readonly<Record<string, unknown>>;

/** What is worth saying about one operation; the rest of its description follows from it. */
export interface OperationFacts {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Any of these admits; undefined where no credentials are needed, empty where any will do. */
  readonly scopes?: readonly string[];
  readonly query?: readonly QueryParameter[];
  readonly body?: RequestBody;
  readonly responses: Readonly<Record<number, Answer>>;
}

/** A parameter of the query. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly required?: boolean;
}

/** A request body; JSON unless it says otherwise. */
export interface RequestBody {
  readonly schema: Schema;
  readonly mediaType?: string;
  readonly required?: boolean;
}

/** One answer of an operation. */
export interface Answer {
  readonly description: string;
  readonly schema?: Schema;
  /** JSON unless given. */
  readonly mediaType?: string;
}

/** Operations by `METHOD /path`; paths are relative to the base URL of the hub. */
export type Operations = Readonly<Record<`${string} /${string}`, OperationFacts>>;

/** Refers to a schema of the document. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A list of what a schema describes. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** An object with these members; those that end in `?` may be missing. */
export function object(members: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  const names = Object.keys(members);
  const required = names.filter((name) => !name.endsWith('?'));
  return {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
    ),
    ...(required.length > 0 && { required }),
    ...more,
  };
}

/** Text, with what it means. */
export function text(description?: string): Schema {
  return described({ type: 'string' }, description);
}

/** A point in time, or null where there is none yet. */
export function time(description?: string): Schema {
  return described({ type: ['string', 'null'], format: 'date-time' }, description);
}

/** Yes or no. */
export function flag(description?: string): Schema {
  return described({ type: 'boolean' }, description);
}

/** A list of names. */
export const names: Schema = listOf({ type: 'string' });

function described(schema: Schema, description: string | undefined): Schema {
  return description === undefined ? schema : { ...schema, description };
}

/** Writes an operation as OpenAPI does: every parameter of its path, and the shape of errors. */
export function toOperationObject(path: string, facts: OperationFacts): Record<string, unknown> {
  const { id, tag, summary, scopes, query = [], body, responses } = facts;
  const scopeText =
    scopes === undefined || scopes.length === 0
      ? undefined
      : `Needs ${scopes.length > 1 ? 'any of ' : ''}${scopes.map((scope) => `\`${scope}\``).join(', ')}.`;
  const description = [facts.description, scopeText].filter(Boolean).join('\n\n');
  const parameters = [
    ...pathParameters(path),
    ...query.map((parameter) => ({ in: 'query', ...parameter })),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== '' && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: body.required ?? true,
        content: { [body.mediaType ?? 'application/json']: { schema: body.schema } },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, answer]) => [status, toResponseObject(answer)]),
      ),
      default: { $ref: '#/components/responses/Error' },
    },
    ...(scopes === undefined && { security: [] }),
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function toResponseObject({ description, schema, mediaType }: Answer): object {
  if (schema === undefined) return { description };
  return { description, content: { [mediaType ?? 'application/json']: { schema } } };
}
