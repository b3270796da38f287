import type { Context } from 'koa';
import { z } from 'zod';
import { HubError } from '../errors.ts';
import { readJsonBody } from '../http/body.ts';
import type { OperationDeclaration } from './operation.ts';

/** A whole number in a query. */
export const wholeNumber = z.preprocess(
  (text) => (typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int('must be a whole number').min(0),
);

/** A flag in a query: set when it is there, also without a value, unless it says no. */
export const flag = z.preprocess(
  (text) => typeof text === 'string' && !/^(?:0|false|no)$/i.test(text),
  z.boolean(),
);

const empty = z.object({});

/** Reads the query as an operation declares it; what is not declared is passed over. */
export function parseQuery(ctx: Context, schema: z.ZodObject = empty): Record<string, unknown> {
  return parse(schema, ctx.query, 'query') as Record<string, unknown>;
}

/** Reads the body as an operation declares it; every problem is named in one `bad_request`. */
export async function parseBody(
  ctx: Context,
  { body: schema }: OperationDeclaration,
  options: { readonly limitBytes: number; readonly anyContentType: boolean },
): Promise<unknown> {
  if (schema === undefined) return undefined;
  return checkBody(schema, await readJsonBody(ctx.req, options.limitBytes, options));
}

/** What a body is that has been read; throws as `parseBody`. */
export function checkBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): z.output<Schema> {
  if (body === undefined && !isOptional(schema)) {
    throw new HubError('bad_request', 'This request needs a JSON body.');
  }
  return parse(schema, body, 'request body') as z.output<Schema>;
}

/** Whether a request may leave the body out. */
export function isOptional(schema: z.ZodType): boolean {
  return schema.safeParse(undefined).success;
}

function parse(schema: z.ZodType, value: unknown, what: string): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw new HubError('bad_request', `Invalid ${what}: ${problems.join('; ')}.`);
}
