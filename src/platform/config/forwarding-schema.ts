import { z } from 'zod';
import { identityFields, isIdentityHeaderName } from '../protocol/identity-headers.ts';
import { text } from '../texts/text.ts';
import { says } from './common-schema.ts';

const headerName = z
  .string()
  .refine(
    isIdentityHeaderName,
    says(
      text`is no name for such a header: letters, digits and hyphens, and none that has a meaning of its own`,
    ),
  )
  .optional();

/** How requests are passed on to an app that looks at names: keys of services, routes and servers alike. */
export const forwardingKeys = {
  host: z
    .enum(['public', 'upstream'])
    .default('public')
    .describe(
      'Which Host an app is asked with: the one that the visitor asked for, or its own address, for an app that answers 403 to a name that it does not know. X-Forwarded-Host has the other.',
    ),
  identity_headers: z
    .strictObject(
      Object.fromEntries(identityFields.map((field) => [field, headerName])) as Record<
        (typeof identityFields)[number],
        typeof headerName
      >,
    )
    .refine((names) => {
      const given = Object.values(names).flatMap((name) => name?.toLowerCase() ?? []);
      return new Set(given).size === given.length;
    }, says(text`has the same header twice`))
    .default({})
    .describe(
      'Further headers by which an app that the gateway guards learns who asks, such as `{"user": "X-Remote-User"}`; visitors cannot set them.',
    ),
};
