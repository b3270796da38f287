import { z } from 'zod';
import { issueProblem } from '../platform/config/common-schema.ts';
import { HubError } from '../platform/errors.ts';
import { joined, type Text, text } from '../platform/texts/text.ts';

const empty = z.object({});

/** Reads a query as an operation declares it; what is not declared is passed over. */
export function checkQuery(
  query: Readonly<Record<string, unknown>>,
  schema: z.ZodObject = empty,
): Record<string, unknown> {
  return parse(schema, query, (problems) => text`Invalid query: ${problems}.`) as Record<
    string,
    unknown
  >;
}

/** Reads a body as an operation declares it; every problem is named in one `bad_request`. */
export function checkBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): z.output<Schema> {
  if (body === undefined && !isOptional(schema)) {
    throw new HubError('bad_request', text`This request needs a JSON body.`);
  }
  return parse(
    schema,
    body,
    (problems) => text`Invalid request body: ${problems}.`,
  ) as z.output<Schema>;
}

/** Whether a request may leave the body out. */
export function isOptional(schema: z.ZodType): boolean {
  return schema.safeParse(undefined).success;
}

function parse(schema: z.ZodType, value: unknown, invalid: (problems: Text) => Text): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const problem = issueProblem(issue) ?? issue.message;
    return issue.path.length === 0 ? problem : text`${issue.path.join('.')}: ${problem}`;
  });
  throw new HubError('bad_request', invalid(joined(problems, '; ')));
}
