import { z } from 'zod';
import { isAddressRange } from '../addresses/local-addresses.ts';

/** Text between two slashes of a path, decoded: what could be read in more than one way is left out. */
const segment = String.raw`(?!\.{1,2}(?:/|$))[^/?#%\\;*\x00-\x20\x7f]+`;
const pathPattern = z
  .string()
  .max(500)
  .regex(
    new RegExp(String.raw`^/(?:${segment}/)*(?:\*|${segment})?$`),
    'is not a path such as /health or /admin/*, decoded, without dot segments, query or semicolon',
  );

/** An IP address or a range of them (RFC 4632). */
export const addressRange = z
  .string()
  .refine(isAddressRange, 'is neither an IP address nor a range such as 10.0.0.0/8');

/** One rule of a guarded service or route. */
const routeRule = z
  .strictObject({
    paths: z
      .array(pathPattern)
      .min(1)
      .optional()
      .describe(
        'Paths below the prefix: `/health` is that path only, `/admin/*` includes everything below it. All paths when left out.',
      ),
    methods: z
      .array(z.string().regex(/^[A-Z][A-Z-]*$/, 'is not a method in capital letters, such as GET'))
      .min(1)
      .optional()
      .describe('Methods. GET includes HEAD and WebSockets. All methods when left out.'),
    client_addresses: z
      .array(addressRange)
      .min(1)
      .optional()
      .describe("Visitors' addresses and CIDR ranges. All addresses when left out."),
    allow: z
      .enum(['everyone', 'users', 'nobody'])
      .default('users')
      .describe(
        'Who is admitted: everyone without a login, users with access to the service, or nobody.',
      ),
    groups: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('The user must also be in one of these groups.'),
  })
  .refine(
    ({ allow, groups }) => groups === undefined || allow === 'users',
    'groups are for "allow": "users" only',
  );

export const routeRules = z
  .array(routeRule)
  .max(200)
  .describe(
    'Who may open which part. The first rule that matches a request applies; without a match, users with access to the service are admitted.',
  );

export type RouteRule = z.output<typeof routeRule>;
